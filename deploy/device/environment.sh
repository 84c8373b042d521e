# To be sourced, with `here` set to the bundle's folder: lets its programs find this machine's PyTorch and CUDA libraries.
site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
libraries=$here/lib:$site/torch/lib
for folder in "$site"/nvidia/*/lib; do libraries=$libraries:$folder; done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
