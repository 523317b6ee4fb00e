#include "model/operands.h"

#include "ops/elementwise.h"
#include "ops/operands/quantize.h"

namespace megalith::model {

using ops::Operand;

namespace {

// In memory of its own where the scale belongs to this very tensor.
ops::Slot slot_for(Arena& arena, const OperandFormat& format) {
  if (format.scaling != Scaling::current) return format.slot;
  // The inverse first: an arena aligns what it gives out, as GEMMs want it.
  auto* numbers = arena.allocate("fp8.scale", DType::f32, {3}).as<float>();
  return {.scale = numbers + 1, .inverse = numbers, .amax = reinterpret_cast<uint32_t*>(numbers + 2)};
}

// One number in the memory of the device, as a tensor.
Tensor number_at(const Context& context, const void* address, DType dtype) {
  return Tensor(const_cast<void*>(address), dtype, {1}, context.stream.device());
}

Operand allocate(Arena& rows_arena, Arena& columns_arena, std::string_view what, const OperandFormat& format,
                 int64_t rows, int64_t cols, Sides sides) {
  if (!format.is_scaled()) {
    Arena& arena = sides == Sides::rows ? rows_arena : columns_arena;
    return arena.allocate(what, format.dtype, {rows, cols});
  }
  Operand operand;
  operand.slot = slot_for(sides == Sides::rows ? rows_arena : columns_arena, format);
  if (sides != Sides::rows) operand.columns = columns_arena.allocate(what, format.dtype, {cols, rows});
  if (sides != Sides::columns) operand.rows = rows_arena.allocate(what, format.dtype, {rows, cols});
  return operand;
}

}  // namespace

Operand allocate_operand(Arena& arena, std::string_view what, const OperandFormat& format, int64_t rows, int64_t cols,
                         Sides sides) {
  return allocate(arena, arena, what, format, rows, cols, sides);
}

Operand allocate_operand(const Context& context, std::string_view what, const OperandFormat& format, int64_t rows,
                         int64_t cols, Sides sides) {
  return allocate(context.scratch, context.kept(), what, format, rows, cols, sides);
}

Operand allocate_kept_input(Arena& arena, std::string_view what, const OperandFormat& format,
                            const ActivationShape& shape, int64_t cols, bool is_divided) {
  const bool divides_tokens = shape.rows != shape.tokens();
  return allocate_operand(arena, what, format, is_divided ? shape.rows : shape.tokens(), cols,
                          is_divided && divides_tokens ? Sides::rows : Sides::columns);
}

Operand with_rows(const Context& context, std::string_view what, const OperandFormat& format, const Operand& kept,
                  int64_t rows, int64_t cols) {
  Operand operand = kept;
  // Memory for what is recomputed serves many layers; the slot is always this one's.
  if (format.scaling == Scaling::delayed || !operand) operand.slot = slot_for(context.scratch, format);
  if (!operand.rows) operand.rows = context.scratch.allocate(what, format.dtype, {rows, cols});
  return operand;
}

Operand gather(const Context& context, const OperandFormat& format, const Operand& local, Sides sides) {
  if (!context.tensor.divides_tokens()) return local;
  if (!format.is_scaled())
    return context.tensor.gather(context.stream, sides == Sides::rows ? context.scratch : context.kept(), local.rows);
  const Operand all(context.tensor.gather(context.stream, context.scratch, local.rows), {}, local.slot);
  return sides == Sides::rows ? all : with_columns(context, format, all);
}

Operand with_columns(const Context& context, const OperandFormat& format, Operand rows) {
  if (!format.is_scaled()) return rows;
  rows.columns = context.kept().allocate("all tokens", format.dtype, {rows.rows.cols(), rows.rows.rows()});
  ops::transpose(context.stream, {.rows = rows.rows, .columns = rows.columns});
  return rows;
}

Operand operand_of(const Context& context, std::string_view what, const OperandFormat& format, Tensor x, Sides sides,
                   Tensor bias_gradient) {
  if (!format.is_scaled()) return x;
  const Operand operand = allocate_operand(context, what, format, x.rows(), x.cols(), sides);
  cast_operand(context, format, x, operand, bias_gradient);
  return operand;
}

void cast_operand(const Context& context, const OperandFormat& format, Tensor x, const Operand& y,
                  Tensor bias_gradient) {
  const ArenaScope scope(context.scratch);
  Tensor scratch;
  if (bias_gradient) {
    scratch = context.scratch.allocate("bias.partial_sums", bias_gradient.dtype,
                                       {ops::column_sum_scratch(x.rows(), x.cols())});
  }
  write_operand(context, format, y, [&](const Operand& out) {
    ops::quantize(context.stream, {.x = x, .y = out, .dbias = out ? bias_gradient : Tensor(), .scratch = scratch});
  });
}

void clear_amax(const Context& context, const ops::Slot& slot) {
  ops::fill(context.stream, {.x = number_at(context, slot.amax, DType::f32), .value = 0.0});
}

void settle_scale(const Context& context, const OperandFormat& format, const ops::Slot& slot) {
  const Tensor amax = number_at(context, slot.amax, DType::i32);
  for (comm::Communicator* group : {context.tensor.group, context.samples.group})
    group->all_reduce(context.stream, amax, comm::Reduction::max).wait(context.stream);
  ops::update_scales(context.stream, {.scales = {.amax = amax,
                                                 .largest = format.largest,
                                                 .scale = number_at(context, slot.scale, DType::f32),
                                                 .inverse = number_at(context, slot.inverse, DType::f32)},
                                      .margin = format.margin});
}

}  // namespace megalith::model
