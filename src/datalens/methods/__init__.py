"""What every method besides DataLens's own is made of: releases planned without data, a learner, a run."""
