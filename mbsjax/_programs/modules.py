"""Modules that are abstract or final."""

import equinox as eqx


class AbstractModule(eqx.Module):
    """A module of the model: abstract, if its name begins with `Abstract`, or final. What is done with a final one is
    often found by its class, in files, drawings and closed forms: a subclass would be taken for something else, or for
    nothing at all, without a word. So it is refused where it is made."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for base in cls.__mro__[1:]:
            if issubclass(base, AbstractModule) and not base.__name__.lstrip("_").startswith("Abstract"):
                raise TypeError(
                    f"{cls.__name__} cannot be a subclass of {base.__name__}, which is final: what is done with a "
                    f"{base.__name__} is found by its class. Write a function that makes one, or a subclass of "
                    f"{_abstract(base)}"
                )


def _abstract(base: type) -> str:
    """The class that users may subclass instead: the last but for this module's own."""
    above = [b.__name__ for b in base.__mro__ if b.__name__.startswith("Abstract") and b is not AbstractModule]
    return above[-1] if above else "equinox.Module that holds one"
