/** A version of Nest, and the entry `once-per-key/nest` that found it. */
export interface NamedNest {
  readonly name: string
  readonly common: typeof import('@nestjs/common')
  readonly NestFactory: typeof import('@nestjs/core').NestFactory
  /** The copy that Nest has: older versions know no Observable of another. */
  readonly rxjs: typeof import('rxjs')
  readonly entry: typeof import('once-per-key/nest')
  readonly FastifyAdapter: FastifyAdapterClass
  /** Of `@nestjs/microservices`, which the root does not have either. */
  readonly MessagePattern: (pattern: string) => MethodDecorator
}

/** As much of `@nestjs/platform-fastify` as the suite calls; the root does not have it. */
export type FastifyAdapterClass = new (options?: object) => import('@nestjs/core').AbstractHttpAdapter

/** Each Nest that is tried: its platforms are other people's packages, so all of them are in `integrations/versions`. */
export const NESTS: readonly NamedNest[] = []
