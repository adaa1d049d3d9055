# The page with its bundled models, run by a user without privileges; works on a read-only root file system.
#   docker build -t vit_demo .                                    for CPUs and NVIDIA GPUs, every package by its hash
#   docker build -t vit_demo --build-arg TORCH_BACKEND=cpu .      smaller, PyTorch for CPUs by its version only
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea

# A backend of `uv pip install --torch-backend`, from PyTorch's own index; none for PyTorch as PyPI has it.
ARG TORCH_BACKEND=

WORKDIR /app
COPY requirements.lock requirements-torch.lock ./
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock \
    && if [ -z "${TORCH_BACKEND}" ]; then \
        pip install --no-cache-dir --no-deps --require-hashes -r requirements-torch.lock; \
    else \
        uv pip install --system --no-cache --torch-backend "${TORCH_BACKEND}" torch==2.15.0 torchvision==0.29.2; \
    fi

COPY app.py ./
COPY checkpoints ./checkpoints
COPY docs ./docs
COPY vit_demo ./vit_demo
RUN python -m compileall -q vit_demo \
    && useradd --uid 1000 --no-create-home --home-dir /tmp vit_demo \
    && install -d -o vit_demo /cache

# Weights fetched from the Hub stay in the volume /cache; everything else that is written goes to /tmp.
ENV GRADIO_ANALYTICS_ENABLED=False \
    GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    HF_HOME=/cache \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

USER 1000
VOLUME /cache
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:7860/healthz', timeout=5)"]
CMD ["python", "app.py"]
