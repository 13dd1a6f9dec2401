"""The OpenAPI description: what FastAPI derives from the routes, with security and the options of studies."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from epsearch.service.access.tokens import COOKIE
from epsearch.service.problems import Refusal
from epsearch.service.requests import SERVER_SET
from epsearch.service.safety import PROBES
from epsearch.service.settings import Settings
from epsearch.study.kinds import EXTENDABLE, KINDS, Search
from epsearch.study.option import Option

TAGS = {
    "studies": "How studies stand, their events, and changes that are requested of them.",
    "results": "Runs, figures, reports.",
    "service": "The ledger, the people, the changes of all.",
    "monitoring": "For probes and Prometheus.",
}
NAMES = {
    "run": "SearchOptions",
    "compare": "ComparisonOptions",
    "memory": "MemoryStudyOptions",
    "protocols": "ProtocolStudyOptions",
}
"""Kind of study -> name of its options in clients."""
SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "The secret that `epsearch token` printed."},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "Of a browser that signed in."},
}


def describe(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """Returns the description as JSON; FastAPI caches it in the application."""
    schema = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        servers=[{"url": str(settings.url)}] if settings.url else None,
        tags=[{"name": name, "description": text} for name, text in TAGS.items()],
    )
    schemas = schema["components"]["schemas"]
    schemas["Refusal"] = Refusal.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= {NAMES[kind]: options_of(kind) for kind in KINDS} | {"ExtensionOptions": extension_options()}
    any_kind = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in NAMES.values()]}
    for path, body in (
        ("/studies", any_kind),
        ("/plan", any_kind),
        ("/studies/{name}/extend", {"$ref": "#/components/schemas/ExtensionOptions"}),
    ):
        content = schema["paths"][f"/api/v1{path}"]["post"]["requestBody"]["content"]["application/json"]
        content["schema"] = body
    if settings.tokens.needed:
        schema["components"]["securitySchemes"] = SECURITY
        schema["security"] = [{name: []} for name in SECURITY]
        for path in PROBES:
            schema["paths"][path]["get"]["security"] = []
    return schema


def options_of(kind: str) -> dict[str, Any]:
    """Returns the JSON schema of a new study of a kind: its options, but those that the service sets."""
    properties: dict[str, Any] = {"kind": {"type": "string", "const": kind, "default": kind}}
    options = {name: option for name, option in KINDS[kind].options().items() if name not in SERVER_SET}
    return {
        "type": "object",
        "title": NAMES[kind],
        "description": f"Options of `epsearch {kind}`, as in a file for --config; all have a default.",
        "properties": properties | {name: of_option(option) for name, option in options.items()},
        "required": [] if kind == Search.kind else ["kind"],
        "additionalProperties": False,
    }


def extension_options() -> dict[str, Any]:
    """Returns the JSON schema of the options that change when a search is extended."""
    return {
        "type": "object",
        "title": "ExtensionOptions",
        "description": "Options of the search that change.",
        "properties": {name: of_option(Search.options()[name]) for name in EXTENDABLE if name not in SERVER_SET},
    }


def of_option(option: Option) -> dict[str, Any]:
    """Returns the JSON schema of the values of an option."""
    default = f" Default: {option.default_text}." if option.default_text else ""
    return {**option.type.json, "description": f"{option.help}{default}"}
