"""CelebA, Places365 and emoji in exactly the layout of their makers, with a few pictures drawn here."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from datalens.data import places365
from datalens.data.emoji import CLASSES, package_name

ATTRIBUTES = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips",
    "Big_Nose", "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby",
    "Double_Chin", "Eyeglasses", "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male",
    "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose",
    "Receding_Hairline", "Rosy_Cheeks", "Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair",
    "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick", "Wearing_Necklace", "Wearing_Necktie", "Young",
)  # fmt: skip
HAIR = ("Black_Hair", "Blond_Hair", "Brown_Hair")
_TONES = {"Black_Hair": (30, 30, 30), "Blond_Hair": (230, 200, 120), "Brown_Hair": (120, 70, 30)}

VENDORS = ("apple", "google", "twitter", "facebook")


def face_flags(number: int) -> set[str]:
    """What the attributes of a drawn face are: men are even, hair turns through black, blond, brown, none, two."""
    hair = ({HAIR[0]}, {HAIR[1]}, {HAIR[2]}, set(), {HAIR[0], HAIR[2]})[number % 5]
    return hair | ({"Male"} if number % 2 == 0 else set())


def face_part(number: int) -> int:
    """The official partition of a drawn face: every fourth is tested on, every fourth validates."""
    return (0, 0, 1, 2)[number % 4]


def write_celeba(root: Path, count: int = 48, *, zipped: bool = False, people: bool = True) -> Path:
    """``root/celeba`` as torchvision has it; three pictures a person, one after the other."""
    folder = root / "celeba"
    folder.mkdir(parents=True)
    names = [f"{number:06d}.jpg" for number in range(1, count + 1)]
    rows = [
        f"{name} " + " ".join(" 1" if title in face_flags(number) else "-1" for title in ATTRIBUTES)
        for number, name in enumerate(names)
    ]
    header = f"{count}\n{' '.join(ATTRIBUTES)} \n"
    (folder / "list_attr_celeba.txt").write_text(header + "\n".join(rows) + "\n")
    parts = [f"{name} {face_part(number)}\n" for number, name in enumerate(names)]
    (folder / "list_eval_partition.txt").write_text("".join(parts))
    if people:
        owners = [f"{name} {2880 + number // 3}\n" for number, name in enumerate(names)]
        (folder / "identity_CelebA.txt").write_text("".join(owners))
    if zipped:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
            archive.writestr("img_align_celeba/", b"")
            for number, name in enumerate(names):
                archive.writestr(f"img_align_celeba/{name}", draw_face(number))
    else:
        (folder / "img_align_celeba").mkdir()
        for number, name in enumerate(names):
            (folder / "img_align_celeba" / name).write_bytes(draw_face(number))
    return root


def draw_face(number: int) -> bytes:
    """An aligned picture: hair above, a face below whose tone says the gender; its top and bottom are green."""
    pixels = np.full((218, 178, 3), (0, 255, 0), np.uint8)
    flags = face_flags(number)
    tones = [_TONES[hair] for hair in HAIR if hair in flags] or [(255, 255, 255)]
    pixels[20:90] = np.mean(tones, axis=0)
    pixels[90:198] = (200, 150, 120) if "Male" in flags else (240, 200, 190)
    pixels[20:198] = (pixels[20:198].astype(int) + number % 7).clip(0, 255)
    return _encoded(pixels, "JPEG", quality=95)


def write_places(root: Path, per_category: int = 2, tested: int = 1) -> Path:
    """``root/places365`` as the small archives and the list of files unpack; two categories are of no class."""
    folder = root / "places365"
    folder.mkdir(parents=True)
    wanted = [member for members in places365.MEMBERS.values() for member in members]
    categories = sorted(f"/{name[0]}/{name}" for name in [*wanted, "airfield", "zen_garden"])
    (folder / "categories_places365.txt").write_text(
        "".join(f"{name} {number}\n" for number, name in enumerate(categories))
    )
    train, test = [], []
    (folder / "val_256").mkdir()
    for number, name in enumerate(categories):
        (folder / "data_256" / name[1:]).mkdir(parents=True)
        for picture in range(1, per_category + 1):
            path = f"{name}/{picture:08d}.jpg"
            (folder / "data_256" / path[1:]).write_bytes(draw_scene(number))
            train.append(f"{path} {number}\n")
        for _ in range(tested):
            path = f"Places365_val_{len(test) + 1:08d}.jpg"
            (folder / "val_256" / path).write_bytes(draw_scene(number))
            test.append(f"{path} {number}\n")
    (folder / "places365_train_standard.txt").write_text("".join(train))
    (folder / "places365_val.txt").write_text("".join(test))
    return root


def draw_scene(number: int) -> bytes:
    """A small picture of one grey by category; some are grey in their file, too."""
    shape = (256, 256) if number % 2 else (256, 256, 3)
    return _encoded(np.full(shape, number * 5, np.uint8), "JPEG")


def emoji_list(per_class: int = 8) -> list[dict]:
    """Emoji in the form of ``emoji.json``: every fourth in two more tones, an old form, one that Facebook lacks."""
    found = []
    for number in range(per_class * len(CLASSES)):
        code = f"1F{number:03X}"
        entry = _drawn(code) | {"category": CLASSES[number % len(CLASSES)], "name": code}
        if number % 4 == 0:
            entry["skin_variations"] = {tone: _drawn(f"{code}-{tone}") for tone in ("1F3FB", "1F3FF")}
        found.append(entry)
    found[2]["has_img_facebook"] = False
    found[0]["obsoleted_by"], found[9]["obsoletes"] = found[9]["unified"], found[0]["unified"]
    found.append(_drawn("1F3FB") | {"category": "Component", "name": "a patch of skin"})
    return found


def emoji_package(vendor: str, listed: list[dict]) -> dict[str, bytes]:
    """The files of one vendor's package, by their path in it."""
    drawn = [one for entry in listed for one in (entry, *entry.get("skin_variations", {}).values())]
    pictures = {
        f"img/{vendor}/64/{one['image']}": draw_emoji(place, vendor)
        for place, one in enumerate(drawn)
        if one[f"has_img_{vendor}"]
    }
    return {
        "emoji.json": json.dumps(listed).encode(),
        "LICENSE": b"MIT",
        "README.md": b"who drew it",
        **pictures,
    }


def write_emoji(root: Path, listed: list[dict] | None = None) -> Path:
    """``root/emoji`` with a folder a package."""
    for vendor in VENDORS:
        for name, content in emoji_package(vendor, emoji_list() if listed is None else listed).items():
            path = root / "emoji" / package_name(vendor) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return root


def draw_emoji(place: int, vendor: str) -> bytes:
    """A patch on nothing; Apple's have half of it half transparent, and one in three files has a palette."""
    pixels = np.zeros((64, 64, 4), np.uint8)
    tone = VENDORS.index(vendor) * 60
    pixels[16:48, 16:48] = (place % 250, tone, 255 - tone, 255)
    if vendor == "apple":
        pixels[16:48, 16:32, 3] = 128
    elif place % 3 == 0:
        target = io.BytesIO()
        Image.fromarray(pixels).convert("P", palette=Image.Palette.ADAPTIVE).save(
            target, "PNG", transparency=0
        )
        return target.getvalue()
    return _encoded(pixels, "PNG")


def _drawn(code: str) -> dict:
    flags = {f"has_img_{vendor}": True for vendor in VENDORS}
    return {"unified": code, "image": f"{code.lower()}.png", **flags}


def _encoded(pixels: np.ndarray, kind: str, quality: int = 75) -> bytes:
    target = io.BytesIO()
    Image.fromarray(pixels).save(target, kind, **({"quality": quality} if kind == "JPEG" else {}))
    return target.getvalue()
