// The version of CUDA that kernels see.
#pragma once
#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif
