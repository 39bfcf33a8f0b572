"""The text of `.DYN` files: keywords and values, in both languages of the thesis' files, and entities made of them."""

import difflib
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple


# Keywords by entity: as written in English, as written in French, and other spellings. Those of appendix D, with its
# mixture of both languages, and the French of the same.
NAME = ("NAME", "NOM")
KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "MACH": {
        "name": NAME,
        "gravity": ("GRAVITY", "GRAVITE", "PESANTEUR"),
        "time": ("TIME", "TEMPS", "DUREE"),
        "step": ("STEP", "PAS"),
        "state": ("STATE", "STADE", "ETAT"),
    },
    "LINK": {"name": NAME, "aro": ("AR0", "AR0", "ARO"), "mass": ("MASS", "MASSE")},
    "SURF": {
        "name": NAME,
        "type": ("TYPE OF SURFACE", "TYPE DE SURFACE", "TYPE"),
        "shape": ("SHAPE", "FORME"),
        "normal": ("NORMAL VECTOR", "VECTEUR NORMAL"),
        "curve": ("TYPE OF CURVE", "PARTIE DE COURBE", "TYPE DE COURBE", "TYPE OF CONTACT CURVE"),
        "center": ("CENTRE", "CENTRE", "CENTER", "ORIGI", "ORIGIN", "ORIGINE", "ORIGINAL"),
        "pinit": ("PINIT", "PINIT"),
        "pend": ("PEND", "PFIN"),
        "radius": ("RADIAL", "RAYON", "RADIUS"),
        "side": ("CONCAVE OR CONVEX", "CONCAVE OU CONVEXE", "CONCAVE OU CONVEX"),
        "num": ("NUM", "NOMBRE"),
        "coeffi": ("COEFFI", "COEFFI"),
        "order": ("ORDER", "ORDRE"),
        "ao": ("AO", "AO", "A0"),
        "ro": ("RO", "RO", "R0"),
        "ko": ("KO", "KO", "K0"),
        "end": ("FIN", "FIN", "END"),
    },
    "PAIR": {
        "name": NAME,
        "link_a": ("PINLINK", "PINLINK"),
        "surf_a": ("PINSURF", "PINSURF"),
        "link_b": ("POUTLINK", "POUTLINK"),
        "surf_b": ("POUTSURF", "POUTSURF"),
        "type": ("TYPEPAIR", "TYPEPAIR", "TYPE"),
    },
    "OCLI": {"name": NAME, "solid": ("SOLID", "SOLIDE"), "fixed": ("FIXED", "FIXE")},
    "OCPA": {
        "name": NAME,
        "joint": ("JOINT", "LIAISON"),
        "force": ("FORCE", "FORCE"),
        "stiff": ("STIFF", "RAIDEUR"),
        "length": ("LENGTH", "LONGUEUR"),
        "link_a": ("LINK OF INPUT PAIR", "LIEN D'ENTREE", "INLINK"),
        "link_b": ("LINK OF OUTPUT PAIR", "LIEN DE SORTIE", "OUTLINK"),
        "position": ("INITIAL POSITION", "POSITION INITIALE", "ARPOSVAR"),
        "velocity": ("INITIAL VELOCITY", "VITESSE INITIALE", "ARVELVAR"),
        **{f"motor{i}": (f"ARMOTOR[{i}]", f"ARMOTOR[{i}]") for i in range(1, 7)},
        "active": ("ACTIVE CONTACT", "CONTACT ACTIF"),
        "restitution": ("RESTITUTION", "RESTITUTION", "RE"),
        "last": ("LISTE LAST", "LISTE LAST"),
        "next": ("LISTE PROX LAST", "LISTE PROX LAST"),
    },
    "LOOP": {
        "name": NAME,
        "chain": ("CHAIN", "CHAINE", "STATE"),
        "num": ("NUMPAIR", "NUMPAIR", "NUM"),
        "along": ("RECLOOP", "RECLOOP", "RECLLOOP"),
    },
}
ENTITY = ("ENTITY", "ENTITE")
ENTITIES = {name: (name, name) for name in KEYS} | {"MACH": ("MACH", "MACH", "MECH")}

# Words that stand for values, in the same order. Of the types of pairs, the files of the thesis show the first three.
YES = {True: ("YES", "OUI", "TRUE", "VRAI"), False: ("NO", "NON", "FALSE", "FAUX")}
TRUE = {True: ("TRUE", "VRAI", "YES", "OUI"), False: ("FALSE", "FAUX", "NO", "NON")}
SURFACES = {"frame": ("REPERE", "REPERE", "FRAME"), "curve": ("COURBE", "COURBE", "CURVE")}
SIDES = {True: ("CONCAVE", "CONCAVE"), False: ("CONVEX", "CONVEXE")}
CURVES = {
    "point": ("POINT", "POINT"),
    "line": ("SEGMENT", "SEGMENT", "SEG", "LINE", "LIGNE"),
    "arc": ("ARC", "ARC"),
    "circle": ("CIRCLE", "CERCLE"),
    "polynomial": ("POLYLN", "POLYLN", "POLY", "POLYNOMIAL"),
}
CHAINS = {"closed": ("CLOSED", "FERMEE"), "open": ("OPEN", "OUVERTE")}
PAIRS = {
    "revolute": ("ROTOIDE", "ROTOIDE", "REVOLUTE"),
    "prismatic": ("PRISMATIQUE", "PRISMATIQUE", "PRISMATIC"),
    "contact": ("CONTACT", "CONTACT"),
    "cylindrical": ("CYLINDRIQUE", "CYLINDRIQUE", "CYLINDRICAL"),
    "universal": ("UNIVERSEL", "UNIVERSEL", "UNIVERSAL"),
    "planar": ("PLAN", "PLAN", "PLANE", "PLANAR"),
}

LARGEST_NUMBER = 1e60
MOST = {"MACH": 1, "LINK": 200, "SURF": 1000, "PAIR": 400, "OCLI": 200, "OCPA": 400, "LOOP": 400}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([EeDd][+-]?\d+)?", re.ASCII)


class Field(NamedTuple):
    """A keyword, what follows it in its line, and the lines below that have no keyword."""

    key: str
    word: str
    line: int
    text: str
    rows: list[str]

    def words(self) -> list[str]:
        return " ".join([self.text, *self.rows]).split()

    def fail(self, expected: str) -> ValueError:
        found = " ".join(self.words())
        return ValueError(f"line {self.line}: {self.word}: expected {expected}, got {short(found)}")

    def name(self) -> str:
        if not self.text or self.rows:
            raise self.fail("a name")
        return self.text

    def numbers(self, *counts: int) -> list[float]:
        """All numbers of the field; `counts` are the possible amounts."""
        numbers = [float(re.sub("[dD]", "e", x)) if _NUMBER.fullmatch(x) else math.nan for x in self.words()]
        if (counts and len(numbers) not in counts) or not all(abs(x) <= LARGEST_NUMBER for x in numbers):
            many = " or ".join(map(str, counts)) or "some"
            raise self.fail(f"{many} number{'s' * (counts != (1,))} of at most {LARGEST_NUMBER:g}")
        return numbers

    def number(self) -> float:
        return self.numbers(1)[0]

    def whole(self, most: int) -> int:
        x = self.number()
        if not (x.is_integer() and 0 <= x <= most):
            raise self.fail(f"a whole number, from 0 to {most}")
        return int(x)

    def word_of(self, meanings: Mapping[Any, tuple[str, ...]]) -> Any:
        found = [m for m, spellings in meanings.items() if _plain(self.text) in spellings]
        if not found or self.rows:
            raise self.fail(f"one of {', '.join(dict.fromkeys(x for s in meanings.values() for x in s))}")
        return found[0]


class Record:
    """An entity of the file, or an element of a curve."""

    def __init__(self, what: str, line: int):
        self.what, self.line, self.fields = what, line, list[Field]()

    def all(self, key: str) -> list[Field]:
        return [f for f in self.fields if f.key == key]

    def maybe(self, key: str, notes: list[str]) -> Field | None:
        """The field of this keyword. One that stands there twice must say the same twice."""
        found = self.all(key)
        if len(found) > 1:
            first, other = found[:2]
            if len(found) > 2 or first.words() != other.words():
                raise ValueError(f"line {other.line}: {other.word}: {self.what} has it already, in line {first.line}")
            notes.append(f"line {other.line}: {other.word} stands there twice, as in line {first.line}")
        return found[0] if found else None

    def get(self, key: str, notes: list[str]) -> Field:
        field = self.maybe(key, notes)
        if field is None:
            spellings = KEYS[self.what.split()[0]][key]
            raise ValueError(f"line {self.line}: {self.what}: expected {spellings[0]}, which is missing")
        return field


def records_of(text: str) -> list[Record]:
    """The entities of a file, their keywords known."""
    records: list[Record] = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = line.replace("\x1a", " ").strip()
        word, colon, value = (part.strip() for part in line.partition(":"))
        fields = records[-1].fields if records else []
        if not line:
            continue
        if fields and fields[-1].key == "along" and not fields[-1].rows:
            fields[-1].rows.append(line)  # the name of a joint, whatever it looks like
        elif colon and _plain(word) in ENTITY:
            what = Field("entity", word, number, value, []).word_of(ENTITIES)
            records.append(Record(what, number))
            if sum(r.what == what for r in records) > MOST[what]:
                raise ValueError(f"line {number}: {word}: expected at most {MOST[what]} {what} in a file")
        elif not records:
            raise ValueError(f"line {number}: expected ENTITY : MACH or another entity, got {short(line)}")
        else:
            key = _keyword(records[-1].what, word)
            if key is not None:
                fields.append(Field(key, word, number, value, []))
            elif colon or not fields:
                known = [s for spellings in KEYS[records[-1].what].values() for s in spellings]
                near = difflib.get_close_matches(_plain(word), known, 1)
                expected = f"{near[0]}" if near else f"a keyword of {records[-1].what}"
                raise ValueError(f"line {number}: unknown keyword {short(word)}: expected {expected}")
            else:
                fields[-1].rows.append(line)
    return records


def _keyword(what: str, word: str) -> str | None:
    plain = _plain(word)
    return next((key for key, spellings in KEYS[what].items() if plain in spellings), None)


def _plain(word: str) -> str:
    """In capitals, without accents, with single blanks."""
    bare = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    return " ".join(bare.upper().split())


def short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
