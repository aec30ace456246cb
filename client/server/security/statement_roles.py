"""Which role each statement needs."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError
from penstock.client.server.principal import Principal, PrincipalRole
from penstock.planner.statements import nodes

_READS = (
    nodes.Query,
    nodes.Subscribe,
    nodes.ExplainWhy,
    nodes.Verify,
    nodes.Use,
    nodes.Show,
    nodes.ShowMetrics,
    nodes.ShowCreate,
    nodes.Describe,
    nodes.DescribeJob,
    nodes.ExplainJob,
    nodes.Help,
    nodes.Quit,
)
# they import Python code into the server, or load the statements of a directory
_ADMINISTERS = (nodes.CreateFunction, nodes.DropFunction, nodes.CreateCatalog, nodes.DropCatalog)
OPERATOR_SETTINGS = (
    "deployment",
    "execution.checkpointing.dir",
    "execution.checkpointing.savepoint-dir",
    "execution.state-recovery.",
    "heartbeat.",
    "jobmanager.",
    "metrics.prometheus.",
    "python.",
    "security.",
    "spark.",
    "state.",
    "taskmanager.",
)
"""Settings, or beginnings of them, that reach into the server's machine: directories, ports, code."""


def required_role(node: nodes.Statement) -> PrincipalRole:
    """Return the least role that may run a statement. A kind of statement that is named nowhere here needs
    the role RUN.
    """
    match node:
        # EXPLAIN runs nothing; a temporary view is a name of the session for a query
        case nodes.Explain() | nodes.CreateView(temporary=True):
            return PrincipalRole.READ
        case nodes.Set(key=key) | nodes.Reset(key=key):
            return _role_of_setting(node, key)
        case _ if isinstance(node, _READS):
            return PrincipalRole.READ
        case _ if isinstance(node, _ADMINISTERS):
            return PrincipalRole.ADMIN
        # whatever changes tables or jobs
        case _:
            return PrincipalRole.RUN


def check_role(principal: Principal, node: nodes.Statement) -> None:
    """Raise CLI-6211 for a statement that the principal's role does not include."""
    role = required_role(node)
    if not principal.may(role):
        raise PenstockError(
            "CLI-6211",
            f"{principal.name} has the role {principal.role}, and this statement needs the role {role}",
            hint=f"an administrator gives the role by penstock user role {principal.name} {role}",
            sqlstate="42501",
        )


def _role_of_setting(node: nodes.Set | nodes.Reset, key: str | None) -> PrincipalRole:
    # SET without a key or a value shows settings
    if isinstance(node, nodes.Set) and (key is None or node.value is None):
        return PrincipalRole.READ
    if key is not None and key.lower().startswith(OPERATOR_SETTINGS):
        return PrincipalRole.ADMIN
    return PrincipalRole.READ
