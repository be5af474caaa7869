"""Phrases that more than one verb prints about privacy."""

from __future__ import annotations

from datalens.privacy.accountant import AccountantKind

CONVERSIONS = {
    AccountantKind.EXACT: "exact curve of composed Gaussians",
    AccountantKind.RDP: "Renyi, tight conversion, best order",
    AccountantKind.CLASSIC: "Renyi, the paper's conversion, best order",
}
IDEAL_SAMPLER = "for an ideal sampler; the shipped one adds less than 1e-9, and a run's ledger holds how much"
USUAL_TOP_K = 200
