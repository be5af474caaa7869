"""Pure maps from gradients to votes: no noise, no epsilon."""
