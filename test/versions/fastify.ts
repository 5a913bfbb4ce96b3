import { fastify } from 'fastify'

export interface NamedFastify {
  readonly name: string
  readonly create: typeof fastify
}

/** Each Fastify that is tried. `integrations/versions` has more of them. */
export const FASTIFYS: readonly NamedFastify[] = [{ name: 'Fastify 5', create: fastify }]
