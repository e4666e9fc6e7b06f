/* SPDX-License-Identifier: Apache-2.0 */
/* Division of matrix multiplications of double and of integers into blocks. */
#include "cpu/ops/matmul/product.h"

#include "base/assert.h"

/* Rows and columns of a block of the result. */
#define BLOCK_ROWS 48
#define BLOCK_COLUMNS 256
/* A result of few rows is computed row by row: sums of a few rows of B, which are read in order. */
#define FEW_ROWS 3
#define FEW_COLUMNS 1024
#define FEW_DEPTH 8

static int64_t block_columns(const kelp_product_block *shape) {
    return shape->m < FEW_ROWS ? FEW_COLUMNS : BLOCK_COLUMNS;
}

static void add_rows(kelp_product_type type, const kelp_product_block *g) {
    int64_t size = (int64_t)kelp_product_bytes(type);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t p = 0; p < g->k; p += FEW_DEPTH)
            kelp_product_kernels_get()->sums[type](&(kelp_product_sums){
                .a = (const char *)g->b + p * g->ldb * size,
                .b = (const char *)g->a + (i * g->a_row + p * g->a_column) * size,
                .y = (char *)g->c + i * g->ldc * size,
                .a_step = g->ldb,
                .b_step = g->a_column,
                .a_stride = 1,
                .steps = KELP_MIN((int64_t)FEW_DEPTH, g->k - p),
                .count = g->n,
                .accumulate = p > 0});
}

static void run_blocks(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_products *products = userp;
    const kelp_product_block *shape = &products->shape;
    int64_t size = (int64_t)kelp_product_bytes(products->type), columns = block_columns(shape);
    int64_t down = kelp_divide_up(shape->m, BLOCK_ROWS);
    int64_t blocks = down * kelp_divide_up(shape->n, columns);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        kelp_product_block g = *shape;
        int64_t row = unit % blocks % down * BLOCK_ROWS, column = unit % blocks / down * columns;
        products->matrices(products->userp, unit / blocks, &g);
        g.a = (const char *)g.a + row * g.a_row * size;
        g.b = (const char *)g.b + column * size;
        g.c = (char *)g.c + (row * g.ldc + column) * size;
        g.m = KELP_MIN((int64_t)BLOCK_ROWS, shape->m - row);
        g.n = KELP_MIN(columns, shape->n - column);
        if (shape->m < FEW_ROWS && g.k > 0)
            add_rows(products->type, &g);
        else
            kelp_product_kernels_get()->block[products->type](&g);
    }
}

void kelp_products_run(const kelp_op_env *env, const kelp_products *products) {
    const kelp_product_block *shape = &products->shape;
    KELP_ASSERT(products->type != KELP_PRODUCT_F32 && products->matrices != NULL);
    int64_t rows = KELP_MIN((int64_t)BLOCK_ROWS, shape->m);
    int64_t columns = KELP_MIN(block_columns(shape), shape->n);
    int64_t blocks =
        kelp_divide_up(shape->m, BLOCK_ROWS) * kelp_divide_up(shape->n, block_columns(shape));
    double work = (double)rows * (double)columns * (double)shape->k + 64;
    kelp_op_parallel(env, products->count * blocks, kelp_cpu_grain_f64(KELP_GRAIN_GEMM / 4, work),
                     run_blocks, (void *)products);
}
