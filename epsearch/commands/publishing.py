"""The command `publish`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from epsearch.arguments import OUT, READS, Commands, Json, Out, Storage
from epsearch.commands.printing import print_result
from epsearch.study import parsers as of
from results.labels import count_text


def add_to(app: Commands) -> None:
    """Adds the command."""
    app.command("publish", here=READS)(publish)


def publish(
    name: Annotated[str, typer.Argument(help="Name of the study, see `epsearch list`.")],
    to: Annotated[
        tuple[str, str],
        typer.Option(help="optuna URL, mlflow URI or tensorboard FOLDER.", metavar="TOOL WHERE", show_default=False),
    ],
    artifacts: Annotated[
        Path | None,
        typer.Option(
            help="Folder of Optuna's artifact store. \\[default: OUT/artifacts]",
            parser=lambda value: of.path(value, "artifacts"),
            metavar="DIRECTORY",
        ),
    ] = None,
    folder: Out = OUT.default,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Publish a study in Optuna, MLflow or TensorBoard; what is there already is not written again."""
    from epsearch import api

    report = api.publish(name, *to, out=folder, storage=storage, artifacts=artifacts)
    files = f", {count_text(report.files, 'file')} uploaded" if report.files else ""
    points = f"{count_text(report.places, 'point')}, {report.added} of them new or changed"
    text = "\n".join(filter(None, (f"published {name}: {points}{files}; {report.view_command}", report.remark)))
    answer = {"name": name, "to": to[0], **report._asdict()}
    answer["look"] = answer.pop("view_command")  # its name in JSON
    print_result(Text(text), answer, as_json, soft_wrap=True)
