"""The sentences of a certificate that do not depend on the run. Data only, so that an audit can compare them."""

from __future__ import annotations

CERTIFICATE_FORMAT = "datalens-certificate/1"

RELEASE_FOLDER = "release"
UNFIT_MARK = "NOT-FOR-PUBLICATION"
"""In the name of every file or folder that is made of a run that is not fit for publication."""
UNFIT_RELEASE_FOLDER = f"{RELEASE_FOLDER}-{UNFIT_MARK}"
"""Where the shared files of such a run lie."""

PUBLIC_INIT_FILE = "public-init.safetensors"
"""The weights that a run begins with, where it begins with public ones."""

WARM_START_FILE = "warm-start.safetensors"
"""What a warm start has released, where there is one."""
WARM_RELEASES = ("class means", "class moments")
"""What that is, as ledger and certificate call it."""

CERTIFICATE_FILE = "certificate.json"
LOADER_FILE = "load_generator.py"
"""Draws from a released generator with PyTorch and safetensors alone; the same for every run."""

ADD_OR_REMOVE = "add-or-remove-one"
ADD_OR_REMOVE_GROUP = "add-or-remove-one-group"
BLANKED = "one-record-blanked"

ONE_RECORD, SEVERAL_RECORDS = "one record", "up to {group_size} records of one person"
"""Whose data neighbours differ by, as the texts below are filled in."""

ADJACENCY_TEXT = {
    ADD_OR_REMOVE: (
        "data sets that differ by {whose}: records enter a public number of slots by a secret random map from the "
        "operating system, and a record that is removed leaves its slot empty"
    ),
    ADD_OR_REMOVE_GROUP: (
        "data sets that differ by all records of one group, such as one person, added or removed: a keyed hash of "
        "the group's own name gives them to one teacher, whatever other groups there are, and a teacher with more "
        "records than slots leaves some out by looking at its own alone"
    ),
    BLANKED: (
        "data sets that differ by {whose} being blanked: the map from records "
        "to slots came from a seed and is not secret, so nothing is claimed about adding or removing"
    ),
}

REPLACE_ONE_TEXT = (
    "the same: the records that change sit with one teacher each, whose votes may change completely under either "
    "notion (a teacher with a single record that is removed votes zero, which would cost less; the larger cost is "
    "charged), and a count of right predictions moves by at most one a record under either notion"
)

REPLACE_ONE_GROUP_TEXT = (
    "the new group may sit with another teacher than the old one, so that the votes of two teachers change, and "
    "every planned release is counted with twice the change; that is known only for a plan that was fixed before the "
    "first release. Where a group keeps its name and only its records are exchanged, one teacher changes, at the "
    "epsilon of adding or removing the group"
)

REPLACE_ONE_COUNTED = (
    "counted for itself, where every planned release is charged for what replacing one record by another "
    "moves"
)
ADJACENCY_OF_BASELINES = "data sets that differ by {whose} added or removed"

METHOD_TEXT = {
    "dp-merf": (
        "By DP-MERF: of all records together one sum was released, of random features of their images by class, and "
        "the generator was fitted to that."
    ),
    "moments": (
        "By moments: of all records together two sums were released by class, of their images and then of products "
        "and squares of what sets an image apart from its class's mean; images are drawn from the normal law with "
        "these moments."
    ),
    "judged": (
        "By judged: of all records together two sums were released by class, of their images and of products and "
        "squares of what sets an image apart from its class's mean; images are mixtures of draws from the normal law "
        "with these moments. They are named by a judge, whose last layer learned step by step, each time from a sum "
        "over all records of its cut error times an image's coordinates; the rest of it comes from such images."
    ),
    "pate-gan": (
        "By PATE-GAN: teachers, each with its own part of the records, voted whether generated images look real; the "
        "noisy counts taught a student, and the student the generator."
    ),
    "g-pate": (
        "By G-PATE: teachers, each with its own part of the records, voted into which bin the gradient of a "
        "generated image falls, along public random directions; the noisy winners, where enough teachers agreed, "
        "taught the generator."
    ),
    "dp-gan": (
        "By DP-GAN: a critic learned by steps of DP-SGD, each from the noisy sum of the clipped gradients of a "
        "random lot of records, and the generator learned from the critic alone."
    ),
    "gs-wgan": (
        "By GS-WGAN: critics, each with its own part of the records, were asked in public turn where generated "
        "images should move; their noisy answers taught the generator."
    ),
    "dp-sgd": (
        "By DP-SGD: the classifier learned step by step, each time from a sum over a random lot of records, of what "
        "was kept of their clipped gradients."
    ),
    "dc-gan": (
        "By DC-GAN, from the records themselves: nothing hides what one record did, and there is no guarantee."
    ),
}
"""How a network came about, by method; a baseline's page says it in full (``docs/baselines.md``)."""

OWN_METHOD_TEXT = "By {name}, a method that is no part of DataLens."
OWN_METHOD = (
    "the method is no part of DataLens: whoever wrote it answers for what it releases and for how far one record "
    "moves that, on which every number here rests, and no program of DataLens has checked it"
)
"""What a certificate says of a method that was registered (``datalens.baselines.registry.register``)."""

CLASSIFIERS = ("dp-sgd",)
"""Methods that train a classifier and no generator."""

PUBLISHED_METHOD_TEXT = {
    "gs-wgan": (
        "By GS-WGAN as its paper prints it: critics, each with its own part of the records, were drawn in secret and "
        "asked where generated images should move. The sampling does not protect as the paper counts it: there is no "
        "guarantee, and nothing was charged."
    ),
}
"""The same of methods that can be run as their papers print them."""

REPLACE_ONE_BY_TWO_TEXT = (
    "a bound for the whole plan, as a record that is replaced is one removed and one added, known only for a plan "
    "that was fixed beforehand: Poisson-sampled steps are charged for one record added or removed"
)

LABELS_TEXT = "uniform on the class list, for the images that teachers vote on and for samples"
LABELS_OF_SAMPLES = "uniform on the class list"
"""The same of methods in which no teacher votes on generated images."""
VOTING_METHODS = ("pate-gan", "g-pate")
"""Methods beside DataLens in which teachers do."""
CLASSES_DECLARED = "declared beforehand"
CLASSES_FOUND_AND_DECLARED = "read off the records, and declared public"
CLASSES_PUBLISHED = "of a published data set"
CLASSES_FOUND = "read off the records and not declared public: for experiments only"
"""Why the class list, which everybody sees, is no secret."""

START_OF = {True: "generator and discriminators start", False: "the generator starts"}
"""What begins with public weights: whether discriminators do."""
START_FROM = {
    "images": "from weights trained without privacy on public images",
    "run": "from the weights of a run on public images",
}
START_CLASSES = {
    ("images", True): "with their classes",
    ("images", False): "each with a class by lot",
    ("run", True): "with the same classes",
    ("run", False): "with other names of classes",
}
"""A public start in words: what it is made from, and whether the classes there are the run's."""

SPENT_TEXT = (
    "epsilon spent is no promise: where training stopped may depend on the data; quote the guarantee above"
)

NOT_COVERED = (
    "choices made by looking at the data or at earlier runs (settings, recipes, which run to release), unless "
    "they were charged to this ledger or to the data set's budget file",
    "other releases about the same people that are in no ledger",
    "side channels: running time, memory access, energy, and anything else but the files in release/",
    "a dishonest curator, or one who restores older copies of everything: ledger and heads guard against accidents",
    "flaws of the operating system's random source, and of the software below this program",
    "what the records of other people say about a person",
)
BEYOND_GROUP_SIZE = "a person who has more records than the guarantee above speaks of"
"""Where what is protected is a number of records, and not a group of whatever size."""
FLOATING_POINT = (
    "floating-point noise: its lowest bits can give away what was summed, and its curve is not proved for it"
)

SEVERAL_NAMES = (
    "a person whose records stand under the names of several groups: each of them is protected by itself"
)

NO_NOISE = "no noise was added, so there is no guarantee at all"
AS_PUBLISHED = (
    "it was run as published, where the paper's account does not hold, so there is no guarantee at all"
)
INSECURE_SEED = (
    "noise and secrets come from an insecure seed, so that whoever knows the seed can take the noise off"
)
CONTINUOUS = "the noise is floating point, for which the guarantee is not proved"

RAISED_TEXT = (
    "the ceiling was raised after something had been released: the proof covers only a ceiling fixed beforehand, "
    "so the guarantee above is the sum of what the ledger allows and is not proved"
)
WEAK_ABOVE = 5.00001
"""Epsilon from which a promise is called weak: 5, and a little more so that two ways of counting agree at 5."""
WEAK_TEXT = (
    "an epsilon above 5 is a weak promise: by itself it would let somebody become nearly sure whether a person is "
    "among the records; a smaller one is better"
)
OF_PLAN = "of all that was planned beforehand"
OF_SPENT = "of what was charged so far, which is less than what is authorised"
"""Of which releases the other accountants speak, where they are named beside the guarantee."""

CUT_OFF_TEXT = (
    "a ledger line was cut off by a crash and charged to be safe, which brings what was spent above what was "
    "authorised; nothing can have been released under that line, but the larger number is the one to quote"
)
