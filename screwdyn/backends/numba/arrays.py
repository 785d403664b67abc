"""Arrays in kernels: a pointer and a shape.

Kernels own no memory. An array of numba has nine fields, counts references and wraps negative indices, so that kernels
would take longer to compile and to run.
"""

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, make_attribute_wrapper, models, register_model, type_callable

__all__ = ["address_of", "array", "integers"]

Value = Any


class Rows(types.Type):
    """An array, row after row. Indices are not checked and not negative; a single one gives a row of a matrix."""

    def __init__(self, dtype: Any, axes: int) -> None:
        self.dtype, self.axes = dtype, axes
        super().__init__(name=f"Rows({dtype}, {axes})")


@register_model(Rows)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Rows) -> None:
        fields = [("data", types.CPointer(kind.dtype)), ("shape", types.UniTuple(types.int64, kind.axes))]
        models.StructModel.__init__(self, manager, kind, fields)


make_attribute_wrapper(Rows, "shape", "shape")


@type_callable(operator.getitem)
def _type_of_item(_: Any) -> Any:
    def typed(array: Any, index: Any) -> Any:
        if not isinstance(array, Rows):
            return None
        fixed = len(index) if isinstance(index, types.BaseTuple) else 1
        return array.dtype if fixed == array.axes else Rows(array.dtype, array.axes - fixed)

    return typed


@type_callable(operator.setitem)
def _type_of_stored_item(_: Any) -> Any:
    return lambda array, index, value: types.none if isinstance(array, Rows) else None


def _item(context: Any, builder: Any, kinds: Sequence[Any], array: Value, index: Value) -> tuple[Value, list[Value]]:
    """Pointer to an item, and its shape; ``kinds`` are the types of the array and of the index."""
    array = cgutils.create_struct_proxy(kinds[0])(context, builder, value=array)
    if isinstance(kinds[1], types.BaseTuple):
        axes = types.UniTuple(types.int64, len(kinds[1]))
        indices = cgutils.unpack_tuple(builder, context.cast(builder, index, kinds[1], axes))
    else:
        indices = [context.cast(builder, index, kinds[1], types.int64)]
    at, shape = None, cgutils.unpack_tuple(builder, array.shape)
    for axis, extent in enumerate(shape):
        if at is not None:
            at = builder.mul(at, extent, flags=["nsw"])
        if axis < len(indices):
            at = builder.add(at, indices[axis], flags=["nsw"]) if at is not None else indices[axis]
    return builder.gep(array.data, [at], inbounds=True), shape[len(indices) :]


def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
    pointer, shape = _item(context, builder, signature.args, *arguments)
    if not shape:
        return builder.load(pointer)
    row = cgutils.create_struct_proxy(signature.return_type)(context, builder)
    row.data, row.shape = pointer, cgutils.pack_array(builder, shape)
    return row._getvalue()


def _store(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
    *place, value = arguments
    kinds = signature.args
    pointer, _ = _item(context, builder, kinds, *place)
    builder.store(context.cast(builder, value, kinds[2], kinds[0].dtype), pointer)
    return context.get_dummy_value()


lower_builtin(operator.getitem, Rows, types.Any)(_load)
lower_builtin(operator.setitem, Rows, types.Any, types.Any)(_store)


def _at_address(dtype: Any) -> Any:
    """A function that makes an array of an address and a shape, for use in kernels."""

    def typed(_: Any, address: Any, shape: Any) -> Any:
        kind = Rows(dtype, len(shape))

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            made.data = builder.inttoptr(arguments[0], context.get_value_type(types.CPointer(dtype)))
            extents = types.UniTuple(types.int64, kind.axes)
            made.shape = context.cast(builder, arguments[1], signature.args[1], extents)
            return made._getvalue()

        return kind(address, shape), generate

    return intrinsic(typed)


array, integers = _at_address(types.float64), _at_address(types.int64)


@intrinsic
def address_of(_: Any, array: Any) -> Any:
    """The address of an array's first entry."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Value:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), generate
