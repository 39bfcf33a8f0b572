"""The command `schema`: the JSON Schema of model files."""

import click

from .console import safe


@click.command()
@safe
def schema() -> None:
    """Prints the JSON Schema of model files, for editors that check and complete them.

    \b
    Example:
      mbsjax schema > model.schema.json
    """
    from .._files.grammar import kept_schema

    click.echo(kept_schema(), nl=False)
