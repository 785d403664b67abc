"""Requests of quantities by name, their results on a tape, and operation counts.

A request is the name of a quantity, ``"mass_matrix"``. For a quantity of one link, the name of the link follows and,
optionally, a frame: ``"jacobian:tool0"``, ``"jacobian:tool0:body"``.
"""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from screwdyn.backends.tape.tape import CountingTape, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, Undetermined, inputs, outputs, subject_of
from screwdyn.core import Array, ScrewdynError, UnknownNameError
from screwdyn.forms.closed_loops import independent_constraints
from screwdyn.forms.numbers import require_resisted
from screwdyn.mechanism.topology import check_open, check_untouched
from screwdyn.physics import CATALOGUE, Model, Quantity, Robot
from screwdyn.physics.recursions.links import BODY, FRAMES, frame_code, is_frame


class Request(NamedTuple):
    """A quantity with its link and frame, None for a quantity of the whole tree, and for the quantity's default."""

    entry: Quantity
    link: str | None = None
    frame: str | None = None

    @property
    def code(self) -> int:
        """Code of the frame; ShapeError for an unknown one."""
        if "frame" not in self.entry.parameters:
            return BODY
        return frame_code(self.frame or self.entry.signature.parameters["frame"].default)

    def places(self, model: Model) -> list[list[Any]]:
        """The places for a recording; for forward dynamics of closed loops, those of independent constraints.

        LoopError or ContactError if the quantity would ignore the loops or contacts.
        """
        entry, computed = self.entry, model.computed(self.entry.name)
        if entry.name == "forward_dynamics":
            check_untouched(model.topology, "forward_dynamics in this form")
        if computed == entry.name:
            return model.rows_of_places(entry.places, self.link or "", self.code)
        if computed is None:
            check_open(model.topology, f"{entry.name} in this form", f"use tree.{entry.name}(…), which knows them")
        return [model.constraints[k] for k in independent_constraints(model)[0]]

    def subject(self, model: Model, tape: Tape, read: Callable[[Iterable[Any]], Scalars] | None = None) -> Subject:
        """The subject of a recording; see :func:`subject_of`."""
        return subject_of(model, tape, self.places(model), read)


def requested(name: object, links: Sequence[str]) -> Request:
    """The request with a given name; errors for an unknown quantity, link or frame, or a link that is missing.

    The text after the last colon is a frame if the text before it is a link and the whole text is not.
    """
    quantity, _, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    entry = CATALOGUE.get(quantity)
    if entry is None:
        near = get_close_matches(quantity or str(name), CATALOGUE, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(CATALOGUE)}"
        raise ScrewdynError(f"there is no function {name!r}; {hint}")
    if "link" not in entry.parameters:
        if rest:
            raise ScrewdynError(f"{quantity} is a quantity of the whole tree, not of a link; got {name!r}")
        return Request(entry)
    of_frame = "frame" in entry.parameters
    if rest in links:
        return Request(entry, rest)
    link, _, frame = rest.rpartition(":")
    if link in links and of_frame:
        return Request(entry, link, FRAMES[frame_code(frame)])
    if link in links:
        raise ScrewdynError(f"{quantity} has no frame; write '{quantity}:{link}', not {name!r}")
    if not rest or (of_frame and not link and is_frame(frame)):
        also = f" or, with a frame, '{quantity}:<link>:body'" if of_frame else ""
        raise ScrewdynError(f"{quantity} is a quantity of a link; write '{quantity}:<link>'{also}")
    raise UnknownNameError.of(link if of_frame and is_frame(frame) else rest, links)


def results(request: Request, model: Model, tape: Tape, subject: Subject | None = None, **how: Any) -> list[Scalars]:
    """The results of a request on a tape, as by :func:`outputs`; errors as of the quantity in any state."""
    if model.ready is not None:
        require_resisted(request.entry, model)
    subject = request.subject(model, tape) if subject is None else subject
    try:
        return outputs(tape, request.entry.name, subject, **how)
    except Undetermined as found:
        raise model.undetermined(found.status, request.link) or found from None


def operation_count(tree: Robot, *functions: str) -> dict[str, int]:
    """Number of operations of some quantities written out for this tree.

    Several quantities are counted together: common operations are counted once, and so is an entry that occurs
    twice in a symmetric matrix. Operations with zeros and ones and operations on constants of the robot, also if
    these are symbols, are not counted.

    Parameters
    ----------
    *functions : str
        Names of quantities, which are the methods of the tree that are functions of q, qd, qdd or tau, such as
        "mass_matrix". The name of a quantity of one link is followed by the link and, if it has one, the frame:
        "forward_kinematics:tool0", "jacobian:tool0:body".

    Returns
    -------
    dict
        "mul", "add" (with subtractions), "div" and "sincos" (sine and cosine of one angle are two).

    Raises
    ------
    ScrewdynError
        If a quantity is unknown, no quantity is given, or a link is missing.
    UnknownNameError
        If there is no such link.
    SingularAttachmentError
        For ``forward_dynamics``, if a joint feels no inertia in any state; for ``operational_inertia``, if the link
        cannot move in all six directions in any state.

    Examples
    --------
    >>> import screwdyn as sd
    >>> sd.robots.two_link().operation_count("mass_matrix")
    {'mul': 1, 'add': 2, 'div': 0, 'sincos': 1}
    """
    model = tree.model
    requests = [requested(name, tuple(model.placements)) for name in functions]
    if not requests:
        raise ScrewdynError("name at least one function to count")
    tape = Tape()
    outputs = [x for request in requests for y in results(request, model, tape) for x in y.ravel()]
    return tape.count(outputs, lambda name: isinstance(name, tuple) and name[0] == "symbol")


def operations_of(function: Callable[..., Array], **sizes: int) -> dict[str, int]:
    """Number of operations of a function of vectors, as in :meth:`screwdyn.KinematicTree.operation_count`.

    Constants that differ by rounding count as equal, and those below 1e-13 as zero, so that the numbers are those of
    exact arithmetic.

    Parameters
    ----------
    function : callable
        Takes arrays of scalars and returns an array.
    **sizes : int
        Number of entries of each argument, such as ``q=3, qd=3``.
    """
    tape = CountingTape()
    result = function(*(inputs(tape, name, range(n)) for name, n in sizes.items()))
    return tape.count(list(result.ravel()), lambda name: False)
