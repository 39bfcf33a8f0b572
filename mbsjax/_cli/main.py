"""The command `mbsjax`: everything that a model file asks for, from the shell.

Each of its commands is a file of its own beside this one. A new one is written like its neighbors, and added to
`COMMANDS`.
"""

import click

from .._programs.version import VERSION
from .cache import cache
from .check import check
from .convert import convert
from .equilibrium import equilibrium
from .examples import examples
from .info import info
from .inverse import inverse
from .kinematics import kinematics
from .montecarlo import montecarlo
from .schema import schema
from .simulate import simulate
from .synthesize import synthesize
from .tolerance import tolerance
from .view import view


COMMANDS = (
    info,
    check,
    kinematics,
    simulate,
    equilibrium,
    inverse,
    view,
    tolerance,
    montecarlo,
    synthesize,
    convert,
    examples,
    schema,
    cache,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION)
@click.option("--cache", metavar="FOLDER", help="Where compiled programs are kept; by default ~/.cache/mbsjax.")
@click.option("--no-cache", is_flag=True, help="Keep no compiled programs.")
@click.pass_context
def main(context: click.Context, cache: str | None, no_cache: bool) -> None:
    """Mechanisms with contact joints: how they move, what their tolerances do, which dimensions do better.

    \b
    Begin with an example:
      mbsjax examples                 # lists them
      mbsjax examples four_bar        # copies four_bar.toml here
      mbsjax kinematics four_bar.toml
      mbsjax view four_bar.toml
    """
    context.obj = {"cache": cache, "keep": not no_cache}  # what `computes` prepares


for command in COMMANDS:
    main.add_command(command)


if __name__ == "__main__":
    main()
