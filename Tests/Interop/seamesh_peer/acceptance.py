"""What counts of the runs held of one partition, and what becomes of a run that comes (RULES.md, "Runs and chains",
"Delivery", "Re-issue and groups").

Hashes are text here, as in `rights`; of the hash of a change its first 32 digits are its tip.
"""

from dataclasses import dataclass, field
from math import inf

from .rights import Rights

TIP_DIGITS = 32


@dataclass(frozen=True, eq=False)
class Change:
    hash: str
    #: (id, first keys of the paths written) of each; an id that is no string is None.
    documents: list
    #: It cannot be read: a critical extension or a codec that nobody here knows.
    is_opaque: bool = False
    #: (replica, number, hash) of the first original (C22).
    origin: tuple | None = None


@dataclass(frozen=True, eq=False)
class Run:
    replica: str
    first: int
    hash_before: str
    #: (replica, number, tip) of what its author had accepted.
    context: list
    signer: str
    changes: list[Change]
    #: Whether it breaks the bounds of PROTOCOL or M4.
    is_malformed: bool = False

    @property
    def last(self) -> int:
        return self.first + len(self.changes) - 1


@dataclass(frozen=True)
class Header:
    number: int
    before: str
    hash: str


@dataclass
class Tree:
    """What is known of one chain: headers, joined by the hashes before them, and the content of some."""

    genesis: str
    headers: dict[str, Header] = field(default_factory=dict)
    content: dict[str, Change] = field(default_factory=dict)

    def children(self) -> dict[str, list[str]]:
        found = {}
        for header in self.headers.values():
            found.setdefault(header.before, []).append(header.hash)
        return found

    def fork_point(self) -> float:
        """The lowest number before any fork; unbounded without one (C5)."""
        forked = (hashes for hashes in self.children().values() if len(hashes) > 1)
        return min((self.headers[hash].number - 1 for hashes in forked for hash in hashes), default=inf)

    def branch_to(self, position: tuple) -> list[Header]:
        """From hash(0) to the header at this position; empty where it is not known to lead there."""
        number, tip = position
        at = next((h for h in self.headers.values() if h.number == number and h.hash[:TIP_DIGITS] == tip), None)
        branch = []
        while at is not None:
            branch.append(at)
            if at.before == self.genesis:
                return branch[::-1]
            at = self.headers.get(at.before)
        return []

    def path(self, branch: tuple) -> list[Header]:
        """The chosen branch: by the hash of the bound first, then the lowest hash known next (C6)."""
        path, children = self.branch_to(branch), self.children()
        while True:
            following = children.get(path[-1].hash if path else self.genesis)
            if not following:
                return path
            path.append(self.headers[min(following)])


class Held:
    """What a node holds of one partition. Runs may be learned in any order, also before what they follow on."""

    def __init__(self, genesis):
        #: Gives hash(0) of the chain of a replica.
        self.genesis = genesis
        self.trees: dict[str, Tree] = {}

    def learn(self, run: Run, has_content: bool = True):
        tree = self.trees.setdefault(run.replica, Tree(self.genesis(run.replica)))
        before = run.hash_before
        for place, change in enumerate(run.changes):
            tree.headers[change.hash] = Header(run.first + place, before, change.hash)
            if has_content:
                tree.content[change.hash] = change
            before = change.hash


class Chain:
    """One chain under given rights (C4)."""

    def __init__(self, rights: Rights, partition: str, replica: str, tree: Tree):
        self.replica, self.tree = replica, tree
        self.bound = rights.bound(partition, replica)
        self.fork_point = tree.fork_point()
        self.floor = rights.floor(partition, replica)
        self.path = tree.path(self.bound.branch)
        self.received = _beginning(self.path, lambda header: header.hash in tree.content)
        self.accepted = _beginning(self.path[: self.received], lambda header: self.reason(header) is None)
        self.clipped = min(self.received, self.bound.bound[0])

    @property
    def is_forked(self) -> bool:
        return self.fork_point != inf

    def reason(self, header: Header) -> str | None:
        """Why a received change is held; None where it is not."""
        bound, change = self.bound, self.tree.content[header.hash]
        if header.number > bound.bound[0]:
            return bound.why
        if change.is_opaque:
            return "unknown-kind"
        if header.number <= bound.base[0]:
            return None
        if header.number > bound.allowed[0]:
            return bound.lack
        if header.number > bound.free[0] and not any(
                source.limit[0] >= header.number and fits(change, source.fields, bound.user)
                for source in bound.sources if source.fields is not None):
            return "document-rule"
        return None

    def held(self) -> list:
        reasons = {header.hash: "after-held" for header in self.path[self.accepted : self.received]}
        if self.accepted < self.received:
            first = self.path[self.accepted]
            reasons[first.hash] = self.reason(first)
        on_path = {header.hash for header in self.path}
        for hash in self.tree.content:
            if hash not in on_path:
                reasons[hash] = "other-branch"
        for header in self.path[self.received :]:
            if header.hash in self.tree.content:
                reasons[header.hash] = "gap"
        return [(self.replica, self.tree.headers[hash].number, hash, reasons[hash]) for hash in reasons]

    def hash_at(self, number: int) -> str | None:
        if number == 0:
            return self.tree.genesis
        return self.path[number - 1].hash if number <= len(self.path) else None


def _beginning(headers: list[Header], holds) -> int:
    """How many from the start on it holds for."""
    return next((place for place, header in enumerate(headers) if not holds(header)), len(headers))


def fits(change: Change, fields: set, user: str | None) -> bool:
    """Does it write a member's own document and nothing else (C18)? Of what cannot be read nothing can be said."""
    return change.is_opaque or all(id == user and set(keys) <= fields for id, keys in change.documents)


class Judgement:
    """What is held of a partition, judged under given rights."""

    def __init__(self, rights: Rights, partition: str, held: Held):
        self.rights, self.partition, self.held_runs = rights, partition, held
        self.chains = {replica: Chain(rights, partition, replica, tree) for replica, tree in held.trees.items()}

    def chain(self, replica: str) -> Chain:
        known = self.chains.get(replica)
        return known or Chain(self.rights, self.partition, replica, Tree(self.held_runs.genesis(replica)))

    def knows(self, replica: str, hash: str) -> bool:
        """hash(0) is always known."""
        tree = self.chain(replica).tree
        return hash == tree.genesis or hash in tree.headers

    def vector(self, which: str) -> list:
        """(replica, number, hash) of each chain: what is `received`, `accepted` or `clipped` of it."""
        ends = [(chain, getattr(chain, which)) for chain in self.chains.values()]
        return sorted((chain.replica, number, chain.hash_at(number)) for chain, number in ends if number)

    def held(self) -> list:
        return sorted(item for chain in self.chains.values() for item in chain.held())

    def forks(self) -> list:
        return sorted((chain.replica, chain.fork_point) for chain in self.chains.values() if chain.is_forked)

    # Effect (C22)

    def accepted_changes(self) -> list[tuple[str, Change]]:
        return [
            (chain.replica, chain.tree.content[header.hash])
            for chain in self.chains.values() for header in chain.path[: chain.accepted]]

    def origin(self, replica: str, change: Change) -> tuple | None:
        """Where it speaks: both replicas are of one device."""
        if change.origin is None:
            return None
        device = self.rights.device_of(replica)
        return change.origin if device is not None and self.rights.device_of(change.origin[0]) == device else None

    def effective(self) -> list[str]:
        """Of an original and its re-issues one takes effect: the original, else the lowest hash."""
        originals, reissues = set(), {}
        for replica, change in self.accepted_changes():
            origin = self.origin(replica, change)
            if origin is None:
                originals.add(change.hash)
            else:
                reissues.setdefault(origin[2], set()).add(change.hash)
        return sorted(originals | {min(hashes) for first, hashes in reissues.items() if first not in originals})

    # Covering (C23)

    def covered(self, context: list) -> dict[str, int]:
        """How far a context covers each replica: past a fork only where its tip is on the accepted path."""
        covered = {}
        for replica, number, tip in context:
            chain = self.chain(replica)
            is_ours = number <= chain.accepted and chain.hash_at(number)[:TIP_DIGITS] == tip
            covered[replica] = number if is_ours else min(number, chain.fork_point)
        return covered

    # Delivery (C7, C8)

    def defect(self, run: Run) -> str | None:
        declared = self.rights.replicas.get(run.replica)
        if declared is None:
            named = any(d.body["replica"] == run.replica for d in self.rights.said("replica"))
            return "void" if named else "undeclared"
        if run.signer != declared.issuer:
            return "wrong-signer"
        if run.is_malformed or (run.first == 1) != (run.hash_before == self.held_runs.genesis(run.replica)):
            return "malformed"
        bound = self.rights.bound(self.partition, run.replica)
        if not bound.sources:
            return "no-grant"
        if all(source.fields is not None for source in bound.sources) and any(
                not any(fits(change, source.fields, bound.user) for source in bound.sources) for change in run.changes):
            return "document-rule"
        return None

    def standing(self, run: Run) -> str:
        """What becomes of it by statements alone."""
        defect = self.defect(run)
        if defect is None:
            return "take"
        if defect in ("no-grant", "document-rule"):
            return "take" if self.rights.in_doubt else "aside"
        if defect in ("undeclared", "void") and self.chain(run.replica).floor < run.first:
            return "aside"
        return "refuse"

    def verdict(self, run: Run) -> tuple[str, str]:
        """take, have, aside, refuse or error, and why. Its signature and hashes are in order."""
        defect, standing, chain = self.defect(run) or "", self.standing(run), self.chain(run.replica)
        if standing != "take":
            return standing, defect
        if run.changes[-1].hash in chain.tree.content:
            return "have", ""
        if run.first > chain.received + 1:
            is_excused = chain.is_forked or chain.floor < run.first
            return "aside" if is_excused else "error", "gap"
        known = [run.hash_before] + [change.hash for change in run.changes]
        if any(
                hash != chain.hash_at(run.first - 1 + place)
                for place, hash in enumerate(known) if run.first - 1 + place <= chain.received):
            return "aside", "fork"
        if run.first > chain.bound.bound[0]:
            return "aside", chain.bound.why
        for replica, number, _ in run.context:
            other = self.chain(replica)
            asked = 0 if self.rights.in_doubt else other.floor
            if other.received < min(number, asked, other.fork_point):
                return "error", "context"
        return "take", defect
