"""Measures of images: utility, Inception Score, FID, KID and the copy check. Images in, numbers out."""

from __future__ import annotations

from datalens.evaluation.copies import CopyCheck, copy_check
from datalens.evaluation.features import FeatureExtractor, FeatureRecipe, Features, feature_extractor
from datalens.evaluation.fid import FeatureStatistics, FrechetDistance, feature_statistics, frechet_distance
from datalens.evaluation.inception import InceptionExtractor, find_weights, load_inception
from datalens.evaluation.inception_score import InceptionScore, inception_score, probability_logs
from datalens.evaluation.inputs import ValueRange, byte_images
from datalens.evaluation.kid import KernelDistance, kernel_distance
from datalens.evaluation.utility import PROTOCOLS, UtilityProtocol, UtilityResult, evaluate_utility

__all__ = [
    "PROTOCOLS",
    "CopyCheck",
    "FeatureExtractor",
    "FeatureRecipe",
    "FeatureStatistics",
    "Features",
    "FrechetDistance",
    "InceptionExtractor",
    "InceptionScore",
    "KernelDistance",
    "UtilityProtocol",
    "UtilityResult",
    "ValueRange",
    "byte_images",
    "copy_check",
    "evaluate_utility",
    "feature_extractor",
    "feature_statistics",
    "find_weights",
    "frechet_distance",
    "inception_score",
    "kernel_distance",
    "load_inception",
    "probability_logs",
]
