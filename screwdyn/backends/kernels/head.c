/* The kernels of screwdyn: rigid-body dynamics of any tree. Made from screwdyn/physics; do not edit.
 *
 * C99, no heap, no global that changes. Operations have the order of the Python source: without fused products
 * (-ffp-contract=off) both give the same bits. */
#include "screwdyn.h"
#include <math.h>
#include <stdbool.h>

typedef screwdyn_real real;
typedef screwdyn_integer integer;
typedef const integer *words;
#ifndef SCREWDYN_API
#define SCREWDYN_API
#endif
#define R(x) ((real)(x))
#ifdef __cplusplus
#define MAKE(T) T
#else
#define MAKE(T) (T)
#endif
#ifdef _MSC_VER
#define ALWAYS __forceinline
#else
#define ALWAYS inline __attribute__((always_inline))
#endif
#ifndef SCREWDYN_APART
#define SCREWDYN_APART ALWAYS
#endif

#define WRONG_INPUT (-1)

static ALWAYS real sine(real x) { return sizeof x == sizeof(float) ? (real)sinf((float)x) : (real)sin((double)x); }
static ALWAYS real cosine(real x) { return sizeof x == sizeof(float) ? (real)cosf((float)x) : (real)cos((double)x); }
static ALWAYS real root(real x) { return sizeof x == sizeof(float) ? (real)sqrtf((float)x) : (real)sqrt((double)x); }
static ALWAYS real absolute(real x) { return x < R(0.0) ? -x : x; }
static ALWAYS real greater(real a, real b) { return b > a ? b : a; }

/* Whether no number is NaN or larger than a bound. */
static ALWAYS bool bounded(const real *x, integer n, real largest)
{
    bool fits = true;
    for (integer k = 0; k < n; k++)
        fits = fits && absolute(x[k]) <= largest;
    return fits;
}

/* Operations on rows of results; a row of code has the operation and the rows of result and operands. */
SCREWDYN_API integer screwdyn_play(words context, words arrays, integer at)
{
    const integer states = context[1], *code = (const integer *)arrays[0];
    (void)at;
    for (integer i = 0; i < context[0]; i++, code += 4) {
        const real *x = (const real *)arrays[1] + code[2] * states, *y = (const real *)arrays[1] + code[3] * states;
        real *out = (real *)arrays[1] + code[1] * states;
        for (integer s = 0; s < states; s++)
            switch (code[0]) {
            case 0: out[s] = x[s] + y[s]; break;
            case 1: out[s] = x[s] - y[s]; break;
            case 2: out[s] = x[s] * y[s]; break;
            case 3: out[s] = x[s] / y[s]; break;
            case 4: out[s] = sine(x[s]); break;
            default: out[s] = cosine(x[s]);
            }
    }
    return 0;
}
