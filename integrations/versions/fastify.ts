import type { fastify } from 'fastify'
import { fastify as fastify4 } from 'fastify4'
import * as newest from '../../test/versions/fastify.js'

export const FASTIFYS: readonly newest.NamedFastify[] = [
  { name: 'Fastify 4', create: fastify4 as unknown as typeof fastify },
  ...newest.FASTIFYS,
]
