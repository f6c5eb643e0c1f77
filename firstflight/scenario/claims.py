"""Claims in scenario files: what a source says of a figure, in words that can be tested.

A [[claim]] compares two settings or windows of its figure (`compares`, the base first) by a metric.
It does so at all places or at some (`where`), and says what it expects of the second compared with
the first. A workload gives these names their meaning. The figure's kind says which words a claim
may expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.scenario.figure_kinds import Figure, FigureKind

LESS, MORE, ALIKE = "less", "more", "alike"
MOST, IS = "most", "is"
AT_MOST, MORE_WHERE = "at_most", "more_where"


class Expectation(NamedTuple):
    """What a claim has to have, or may have, with one word of `expects`."""

    least: int  # items that it compares
    most: int | None  # items that it compares; None for any number
    takes: bool = False  # whether it may have a published number
    needs: bool = False  # whether it has to have a published number


EXPECTATIONS = {
    # The second is less, or more, than the first. published: by how much, in percent of the first;
    # a rate has percentage points.
    LESS: Expectation(2, 2, takes=True),
    MORE: Expectation(2, 2, takes=True),
    # The two differ by no more than `within`, in the metric's unit.
    ALIKE: Expectation(2, 2),
    # One of the compared items has the most of all; or the most is as published.
    MOST: Expectation(0, None, takes=True),
    # The only item is as published.
    IS: Expectation(1, 1, takes=True, needs=True),
    # The metric of each trial is at most its value in a column.
    AT_MOST: Expectation(1, 1),
    # The metric of a trial is more than the least one where its second column is more than its
    # first, and nowhere else.
    MORE_WHERE: Expectation(2, 2)}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the source (says), tested on a figure, by its name.

    compares, metric: as above; a workload says which. published: the number in the source; within:
    how far from it is still reproduced. Without it less and more are a direction.
    rebuilt, of traces: the source does not print that number, the scenario puts it in (a window, a
    write), so that no agreement with it reproduces anything.
    abstract_only: only the abstract of the source was read. Then a result that would be
    "reproduced" is "direction". why: ours, what a reader should know of the answer.
    """

    figure: str
    says: str
    compares: Sequence[object] = key((), absent=True)
    metric: str = key("", absent=True)
    expects: str = key(reader=schema.word(tuple(EXPECTATIONS)))
    published: float | None = None
    within: float | None = None
    rebuilt: bool = key(False, absent=True)
    abstract_only: bool = False
    why: str = ""

    def check(self, where: str) -> None:
        """Check that the claim has what its word of `expects` needs. Raises UsageError."""
        expectation, said = EXPECTATIONS[self.expects], f'expects = "{self.expects}"'
        least, most = expectation.least, expectation.most
        has_too_many = most is not None and len(self.compares) > most
        if len(self.compares) < least or has_too_many:
            order = ", the base first" if least > 1 else ""
            raise UsageError(f"{where}: compares: {said} has {least} of them{order}")

        if self.published is not None and not expectation.takes:
            taking = [word for word, other in EXPECTATIONS.items() if other.takes]
            raise UsageError(f"{where}: published goes with expects = {', '.join(taking)}, not with"
                             f" {self.expects}")
        if expectation.needs and self.published is None:
            raise UsageError(f"{where}: published is missing: {said} compares with it")
        if self.expects == MOST and bool(self.compares) == (self.published is not None):
            raise UsageError(f"{where}: {said} has either compares or published")
        if self.within is not None and self.published is None and self.expects != ALIKE:
            raise UsageError(f'{where}: within goes with published, or with expects = "{ALIKE}"')
        if self.rebuilt and self.expects != IS:
            raise UsageError(f'{where}: rebuilt goes with expects = "{IS}"')


C = TypeVar("C", bound=Claim)
F = TypeVar("F", bound=Figure)
M = TypeVar("M")


def read_claims(kind: type[C], raw: Mapping[str, object], figures: Iterable[Figure], where: str
                ) -> dict[str, C]:
    """Read the [[claim]]s on these figures. Raises UsageError.

    Each has as its key the place in the file by which messages name it.
    """
    claims = {}
    for claim in schema.read_tables(kind, raw, "claim", where, called="says"):
        claims[schema.place_of(where, "claim", claim.says)] = claim
    names = [figure.name for figure in figures]
    for place, claim in claims.items():
        schema.one_of(claim.figure, names, f"{place}: figure")
    return claims


def check_expects(claim: Claim, figure: F, kinds: Mapping[str, FigureKind[M, F]], where: str
                  ) -> None:
    """Check that figures of this kind can be tested for what the claim expects. Raises UsageError.
    """
    testable = kinds[figure.kind].expects
    if claim.expects not in testable:
        raise UsageError(f'{where}: expects: of a figure of kind "{figure.kind}" a claim expects'
                         f" {', '.join(testable) or 'nothing'}, not {claim.expects!r}")
