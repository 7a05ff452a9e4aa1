# syntax=docker/dockerfile:1
# Dependencies and build are the same for every platform, so they are made on the builder's own, without emulation.
FROM --platform=$BUILDPLATFORM node:26.10.0-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

FROM base AS build
RUN npm ci
COPY tsconfig.json tsconfig.build.json nest-cli.json rolldown.config.js ./
COPY src ./src
RUN npm run -s build && mkdir -m 700 /data

FROM base AS dependencies
# The image brings the runtime; the optional dependencies are that same runtime for other machines.
# Source maps of packages help nobody here.
RUN npm ci --omit=dev --omit=optional \
  && find node_modules -name '*.map' -delete

FROM node:26.10.0-bookworm-slim
# The port of a container can be reached only if the service listens on the container's own address.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
COPY --from=dependencies /app/package.json ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY plant-store ./
# For the embedded database, without DATABASE_URL. Nothing else is written to: the file system may be read-only.
COPY --from=build --chown=node:node /data /data
USER node
EXPOSE 3000
# Bash sends the request itself: a check with Node takes twenty times the processor time.
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD ["bash", "-c", "exec 3<>\"/dev/tcp/${HOST:-127.0.0.1}/${PORT:-3000}\" && printf 'GET /health/live HTTP/1.0\r\n\r\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
# Node itself, not npm, so that signals reach it.
CMD ["node", "dist/main.js"]
