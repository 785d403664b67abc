"""Requests of quantities by name, and their results on a tape.

A request is the name of a quantity, ``"mass_matrix"``. For a quantity of one link, the name of the link follows and,
optionally, a frame: ``"jacobian:tool0"``, ``"jacobian:tool0:body"``.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from screwdyn.backends.tape.outputs import outputs
from screwdyn.backends.tape.tape import Scalar, Tape
from screwdyn.backends.tape.trace import Scalars, Subject, Undetermined, constants
from screwdyn.core import expressions
from screwdyn.core.errors import ScrewdynError, UnknownNameError
from screwdyn.forms.independent_constraints import written_places
from screwdyn.forms.numbers import require_resisted, undetermined
from screwdyn.physics.frames import BODY, COM, FRAMES, frame_code, is_frame
from screwdyn.physics.joint_zeros import moved_zeros
from screwdyn.physics.model import Model
from screwdyn.physics.quantities import CATALOGUE, Quantity
from screwdyn.physics.table import PLACE

__all__ = ["Request", "requested", "results", "scalars"]


class Request(NamedTuple):
    """A quantity with its link and frame.

    Attributes
    ----------
    entry : Quantity
    link : str or None
        None for a quantity of the whole tree.
    frame : str or None
        "com", "body", "base" or "mixed"; None for the quantity's default.
    """

    entry: Quantity
    link: str | None = None
    frame: str | None = None

    @property
    def code(self) -> int:
        """Code of the frame."""
        if self.entry.places == "subtree":
            return COM
        if "frame" not in self.entry.parameters:
            return BODY
        return frame_code(self.frame or self.entry.signature.parameters["frame"].default)

    def subject(self, model: Model, tape: Tape, read: Callable[[Iterable[Any]], Scalars] | None = None) -> Subject:
        """The subject of a recording: the table of a model, its charts, and the places of the links.

        ``read`` converts the robot's numbers to scalars; by default :func:`scalars` does if there are symbols.
        """
        numbers = read is None and model.ready is not None
        read = functools.partial(scalars, tape) if read is None else read
        rows = constants(model.table) if numbers else np.array([*model.rows, model.base_row], dtype=object)
        table, zeros = moved_zeros(rows)
        rows_of_places = written_places(self.entry, model, self.link or "", self.code)
        places = read(x for row in rows_of_places for x in row).reshape(-1, PLACE)
        charts = model.charts
        if charts is not None:
            charts = charts._replace(couplings=read(charts.couplings.flat).reshape(charts.couplings.shape))
        return Subject(read(table.flat).reshape(table.shape), charts, places, zeros=read(zeros))


def requested(name: object, links: Sequence[str]) -> Request:
    """The request with a given name.

    The text after the last colon is a frame if the text before it is a link and the whole text is not.

    Raises
    ------
    ScrewdynError
        If there is no such quantity (the message gives the most similar name), or if the link is missing, or the
        quantity has no link or frame.
    UnknownNameError
        If there is no such link.
    ShapeError
        If there is no such frame.
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


def scalars(tape: Tape, numbers: Iterable[Any]) -> Scalars:
    """Numbers of a robot as floats, or as inputs ("symbol", expression) if they contain symbols."""
    return np.array([_scalar(tape, x) for x in numbers], dtype=object)


def _scalar(tape: Tape, x: Any) -> Scalar:
    if expressions.is_number(x):
        return float(x)
    minus = bool(x.could_extract_minus_sign())
    given = tape.input(("symbol", -x if minus else x))
    return -given if minus else given


def results(
    request: Request,
    model: Model,
    tape: Tape,
    subject: Subject | None = None,
    extra: Scalars | float = 0.0,
) -> list[Scalars]:
    """The results of a request on a tape; parameters as for :func:`screwdyn.backends.tape.outputs.outputs`.

    Raises
    ------
    SingularAttachmentError
        If a joint feels no inertia, or the link cannot move in all six directions, in any state.
    InertiaError
        If there is no centre of mass, because no link has a mass.
    """
    if model.ready is not None:
        require_resisted(request.entry, model)
    subject = request.subject(model, tape) if subject is None else subject
    try:
        return outputs(tape, request.entry.name, subject, extra)
    except Undetermined as found:
        reason = undetermined(found.status, model, request.link)
        assert reason is not None
        raise reason from None
