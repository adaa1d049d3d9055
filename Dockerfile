# The page with its bundled models, run by a user without privileges; works on a read-only root file system.
#   docker build -t vit_demo .                                       for a CPU
#   docker build -t vit_demo --build-arg TORCH_BACKEND=cu128 .       for an NVIDIA GPU; see `uv pip install --help`
FROM python:3.12-slim

ARG TORCH_BACKEND=cpu

WORKDIR /app
COPY requirements.txt ./
RUN pip install --no-cache-dir "uv>=0.13,<1" \
    && uv pip install --system --no-cache --torch-backend "${TORCH_BACKEND}" -r requirements.txt

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
