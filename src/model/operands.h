#pragma once

#include "model/context.h"
#include "model/precision.h"

namespace megalith::model {

// What of an operand is made. A format whose GEMMs transpose by themselves has rows, whatever is asked for.
enum class Sides {
  rows,     // for the GEMM that comes next: y = x W^T, or dx = dy W
  columns,  // for the gradient of the weights
  both,
};

// Memory for an operand (rows, cols), all of it from one arena.
ops::Operand allocate_operand(Arena& arena, std::string_view what, const OperandFormat& format, int64_t rows,
                              int64_t cols, Sides sides);
// The same in a pass: rows in scratch, and in memory of context.kept() what the gradient of the weights reads.
ops::Operand allocate_operand(const Context& context, std::string_view what, const OperandFormat& format, int64_t rows,
                              int64_t cols, Sides sides);
// What forward keeps of a linear layer's input for the gradient of its weights: rows where tensor-parallel ranks divide
// the tokens, which are gathered as rows.
ops::Operand allocate_kept_input(Arena& arena, std::string_view what, const OperandFormat& format,
                                 const ActivationShape& shape, int64_t cols, bool is_divided);

// `kept` with the rows that a forward GEMM reads, in scratch where they are not kept.
ops::Operand with_rows(const Context& context, std::string_view what, const OperandFormat& format,
                       const ops::Operand& kept, int64_t rows, int64_t cols);
// All tokens of an operand whose rows tensor-parallel ranks may divide.
ops::Operand gather(const Context& context, const OperandFormat& format, const ops::Operand& local, Sides sides);
// The same with the columns that the gradient of the weights reads, in memory of context.kept().
ops::Operand with_columns(const Context& context, const OperandFormat& format, ops::Operand rows);
// x (N,C) as an operand: itself, or cast. bias_gradient, optional: += the column sums of x.
ops::Operand operand_of(const Context& context, std::string_view what, const OperandFormat& format, Tensor x,
                        Sides sides, Tensor bias_gradient = {});
// Casts into memory that is there.
void cast_operand(const Context& context, const OperandFormat& format, Tensor x, const ops::Operand& y,
                  Tensor bias_gradient = {});

// Under current scaling: makes the slot's scale from the amax that was measured, on all ranks that hold a part.
void settle_scale(const Context& context, const OperandFormat& format, const ops::Slot& slot);
void clear_amax(const Context& context, const ops::Slot& slot);

// Calls write(operand), which fills it. Under current scaling it is called once before with an operand that has neither
// rows nor columns, only to measure: sums that the same operation makes must be left to the second call.
template <class Write>
void write_operand(const Context& context, const OperandFormat& format, ops::Operand y, const Write& write) {
  if (format.scaling == Scaling::current) {
    clear_amax(context, y.slot);
    write(ops::Operand({}, {}, y.slot));
    settle_scale(context, format, y.slot);
    y.slot.amax = nullptr;
  } else if (!context.training) {
    y.slot.amax = nullptr;
  }
  write(y);
}

}  // namespace megalith::model
