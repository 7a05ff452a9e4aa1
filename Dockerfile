# syntax=docker/dockerfile:1
# The build is the same for every platform, so it is made on the builder's own, without emulation; so are the packages for
# the platform of the image, which npm only unpacks.
FROM --platform=$BUILDPLATFORM node:24.21.0-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

FROM base AS build
RUN npm ci
COPY tsconfig.json nest-cli.json ./
COPY src ./src
RUN npm run -s build

FROM base AS dependencies
ARG TARGETARCH
# The image brings the runtime, which is also one of the packages. Nothing here reads source maps, TypeScript or static libraries.
RUN npm ci --omit=dev --os=linux --cpu="$(echo "$TARGETARCH" | sed s/amd64/x64/)" \
  && rm -rf node_modules/node-linux-* node_modules/.bin/node \
  && find node_modules \( -name '*.map' -o -name '*.ts' -o -name '*.[cm]ts' -o -name '*.a' \) -delete

# On the platform of the image: Postgres itself makes the empty database that each first start unpacks. Only the scripts for
# that are copied, so that another change of the source leaves this large layer as it is.
FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY --from=dependencies /app ./
COPY src/database/embedded/prepare-cluster.sh src/database/embedded/as-ordinary-user.sh ./
RUN sh prepare-cluster.sh && rm *.sh

FROM node:24.21.0-bookworm-slim
# The port of a container can be reached only if the service listens on the container's own address.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json plant-store ./
COPY --from=build /app/dist ./dist
# For the embedded database, without DATABASE_URL. Any user may run the container, and makes a folder of its own here, which is
# closed to others. Nothing else is written to: the file system may be read-only.
RUN mkdir -m 1777 /data
VOLUME /data
USER node
EXPOSE 3000
# Bash sends the request itself: a check with Node takes twenty times the processor time.
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD ["bash", "-c", "exec 3<>\"/dev/tcp/${HOST:-127.0.0.1}/${PORT:-3000}\" && printf 'GET /health/live HTTP/1.0\r\n\r\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
# Not npm, so that signals reach the service: this script becomes its process.
CMD ["./plant-store", "start"]
# At the end, because other values need no other layers. A release passes its own.
ARG VERSION=1.0.0
ARG SOURCE=https://github.com/OWNER/plant-store
LABEL org.opencontainers.image.title="Plant Store" \
  org.opencontainers.image.description="Stores plants in Postgres: exactly, once, for good." \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.source="$SOURCE" \
  org.opencontainers.image.version="$VERSION"
