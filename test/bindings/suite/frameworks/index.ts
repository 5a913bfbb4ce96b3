import type { Framework } from '../framework.js'
import { ON_FASTIFY } from './fastify.js'
import { ON_FETCH } from './fetch.js'
import { onHono } from './hono.js'
import { onKoa } from './koa.js'
import { ON_NEST } from './nest.js'
import { ON_NODE } from './on-node.js'

/** All that the suite runs on. */
export const FRAMEWORKS: readonly Framework[] = [...ON_NODE, ...ON_FETCH, onKoa, ...ON_FASTIFY, onHono, ...ON_NEST]
