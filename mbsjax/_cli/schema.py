"""The command `schema`: the JSON Schema of model files."""

import json

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
    from .._files.schema import schema as made

    click.echo(json.dumps(made(), indent=2))
