"""Measures of images: utility, Inception Score, FID and the copy check. Images in, numbers out."""

from __future__ import annotations

from datalens.evaluation.copies import CopyCheck, copy_check
from datalens.evaluation.features import FeatureExtractor, FeatureRecipe, Features, feature_extractor
from datalens.evaluation.fid import FeatureStatistics, FrechetDistance, feature_statistics, frechet_distance
from datalens.evaluation.inception_score import InceptionScore, inception_score, probability_logs
from datalens.evaluation.inputs import ValueRange, byte_images
from datalens.evaluation.utility import PROTOCOLS, UtilityProtocol, UtilityResult, evaluate_utility

__all__ = [
    "PROTOCOLS",
    "CopyCheck",
    "FeatureExtractor",
    "FeatureRecipe",
    "FeatureStatistics",
    "Features",
    "FrechetDistance",
    "InceptionScore",
    "UtilityProtocol",
    "UtilityResult",
    "ValueRange",
    "byte_images",
    "copy_check",
    "evaluate_utility",
    "feature_extractor",
    "feature_statistics",
    "frechet_distance",
    "inception_score",
    "probability_logs",
]
