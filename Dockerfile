# Two images from one file: web (small, no torch) and worker (with torch). Both run as an ordinary user.
FROM node:22-slim AS frontend
WORKDIR /frontend
COPY frontend/package.json frontend/vendor.mjs frontend/.npmrc ./
RUN mkdir -p static && npm install --omit=dev --no-audit --no-fund --no-package-lock && node vendor.mjs

FROM python:3.12-slim AS base
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1
# The user owns both folders in the image, so that a new volume mounted there is his.
RUN useradd --uid 10001 --create-home clarinet && mkdir /data /backups && chown clarinet /data /backups
WORKDIR /srv
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY app app
COPY worker worker
COPY clarinet clarinet
COPY migrations migrations
COPY frontend frontend
COPY --from=frontend /frontend/static/vendor frontend/static/vendor

FROM base AS web
RUN pip install -c constraints.txt '.[web,oidc,s3,traces]'
USER clarinet
WORKDIR /data
VOLUME /data
ENTRYPOINT ["clarinet"]
CMD ["serve", "--host", "0.0.0.0"]

FROM base AS worker
RUN pip install -c constraints.txt '.[web,train,heic,s3,traces]'
USER clarinet
WORKDIR /data
VOLUME /data
ENTRYPOINT ["clarinet"]
CMD ["worker", "--queues", "gpu"]
