# syntax=docker/dockerfile:1
FROM node:26.10.0-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

FROM base AS build
# The image brings the runtime; the optional dependencies are that same runtime for other machines.
RUN npm ci --omit=optional
COPY tsconfig.json tsconfig.build.json nest-cli.json ./
COPY src ./src
RUN npm run -s build

FROM base AS dependencies
# Source maps of packages help nobody here.
RUN npm ci --omit=dev --omit=optional \
  && find node_modules -name '*.map' -delete

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/package.json ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY plant-store ./
# Nothing below /app is written to: the file system may be read-only.
USER node
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Node itself, not npm, so that signals reach it.
CMD ["node", "dist/main.js"]
