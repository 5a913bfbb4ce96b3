// Nest: option functions may declare the request as their platform's, or as the application's own.
import type { Request } from 'express'
import type { FastifyRequest } from 'fastify'
import type { Store } from 'once-per-key/core'
import { IdempotencyModule, Idempotent, type NestOptions, type NestRequest } from 'once-per-key/nest'

declare const store: Store

interface MerchantRequest extends Request {
  readonly merchantId: string
}

IdempotencyModule.forRoot({ store, scope: (request) => request.user?.id, skip: ({ headers }) => headers.range === '' })
IdempotencyModule.forRoot({ store, scope: (request: NestRequest) => request.user?.id })
IdempotencyModule.forRoot({ store, scope: (request: Request) => request.get('x-merchant') })
IdempotencyModule.forRoot({ store, scope: (request: MerchantRequest) => request.merchantId, isGlobal: false })
IdempotencyModule.forRoot({ store, scope: (request: FastifyRequest) => request.headers['x-merchant']?.toString() })
IdempotencyModule.forRootAsync({ useFactory: async () => ({ store, scope: (request) => request.user?.id }) })
IdempotencyModule.forRootAsync({
  useFactory: () => ({ store, scope: (request: MerchantRequest) => request.merchantId }),
})
// @ts-expect-error: whose key it is must be said
IdempotencyModule.forRoot({ store })
// @ts-expect-error: a request is no text
IdempotencyModule.forRoot({ store, scope: (request: string) => request })
// @ts-expect-error: a scope is text
IdempotencyModule.forRoot({ store, scope: (request: Request) => request.ips })

Idempotent({ required: true, fingerprint: (request) => request.body })
Idempotent({ scope: (request: Request) => request.ip, isSuccess: (answer, _request: Request) => answer.status < 500 })
Idempotent({ skip: (request: MerchantRequest) => request.merchantId === 'test' })
Idempotent({ keepFailure: (_answer, request: FastifyRequest) => request.is404 })

declare const options: NestOptions
IdempotencyModule.forRoot({
  ...options,
  renderProblem: (problem, request: Request) => ({ status: 400, body: `${problem.code}${request.ip}` }),
})
