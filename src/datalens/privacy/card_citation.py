"""Whom to cite for a run: the paper of its method, and this software."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy.baseline_card import is_baseline, is_of_own_method

_DATALENS = """```bibtex
@inproceedings{wang2021datalens,
  title     = {{DataLens}: Scalable Privacy Preserving Training via Gradient Compression and Aggregation},
  author    = {Wang, Boxin and Wu, Fan and Long, Yunhui and Rimanic, Luka and Zhang, Ce and Li, Bo},
  booktitle = {Proceedings of the 2021 ACM SIGSAC Conference on Computer and Communications Security},
  year      = {2021},
  doi       = {10.1145/3460120.3484579}
}
```"""
_PAPERS = {
    "moments": "This method has no paper; it is described in the documents of the software, under *moments*.",
    "judged": "This method has no paper; it is described in the documents of the software, under *judged*.",
    "dp-merf": (
        "Harder, Adamczewski and Park, *DP-MERF: Differentially Private Mean Embeddings with Random Features for "
        "Practical Privacy-Preserving Data Generation*, AISTATS 2021."
    ),
    "pate-gan": (
        "Yoon, Jordon and van der Schaar, *PATE-GAN: Generating Synthetic Data with Differential Privacy "
        "Guarantees*, ICLR 2019."
    ),
    "g-pate": (
        "Long et al., *G-PATE: Scalable Differentially Private Data Generator via Private Aggregation of Teacher "
        "Discriminators*, NeurIPS 2021."
    ),
    "dp-gan": (
        "Xie, Lin, Wang, Wang and Zhou, *Differentially Private Generative Adversarial Network*, 2018."
    ),
    "gs-wgan": (
        "Chen, Orekondy and Fritz, *GS-WGAN: A Gradient-Sanitized Approach for Learning Differentially Private "
        "Generators*, NeurIPS 2020."
    ),
    "dp-sgd": (
        "Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang, *Deep Learning with Differential Privacy*, "
        "CCS 2016; for what is kept of a gradient, the paper of DataLens:\n\n" + _DATALENS
    ),
    "dc-gan": (
        "Radford, Metz and Chintala, *Unsupervised Representation Learning with Deep Convolutional Generative "
        "Adversarial Networks*, ICLR 2016."
    ),
}


def citation(certificate: Mapping[str, Any]) -> list[str]:
    """Paragraphs: the method's paper, the software with its version, and the run by its ledger."""
    version, run = certificate["environment"].get("datalens"), certificate["ledger"]["run_id"]
    software = (
        f"The software is DataLens{'' if version is None else f' {version}'}, an independent implementation"
    )
    return [_paper(certificate), f"{software}; this run is `{run}`."]


def _paper(certificate: Mapping[str, Any]) -> str:
    if is_of_own_method(certificate):
        return "The method is no part of DataLens: whoever wrote it says whom to cite for it."
    return _PAPERS[certificate["mechanism"]["name"]] if is_baseline(certificate) else _DATALENS
