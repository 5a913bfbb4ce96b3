import type { CallHandler, ExecutionContext, Type } from '@nestjs/common'
import { agenticCommerce, ietfDraft07, universalCommerce } from 'once-per-key'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { decorate, PLACES, serve } from './serve-nest.js'

// The binding suite has the rules of each profile; here is what becomes of Nest’s own ways to fail.

describe.each(PLACES)('$place', (place) => {
  const { common, entry, rxjs } = place.nest

  function payouts(handle: () => unknown): Type {
    class Payouts {
      create() {
        return handle()
      }
    }
    common.Controller('payouts')(Payouts)
    decorate(Payouts, 'create', [common.Post(), entry.Idempotent()])
    return Payouts
  }

  const throwing = (status: number) =>
    vi.fn((): unknown => {
      throw new common.HttpException({ declined: true }, status)
    })

  test.each([
    [ietfDraft07, 422],
    [agenticCommerce, 422],
    [universalCommerce, 409],
  ] as const)('with $name an exception below 500 is kept as it was answered', async (profile, mismatch) => {
    const handle = throwing(402)
    const { post } = await serve(place, [payouts(handle)], { options: { profile } })
    const first = await post()
    expect(first).toMatchObject({ status: 402, json: { declined: true }, isReplay: false })
    expect(await post()).toMatchObject({ status: 402, text: first.text, isReplay: true })
    expect((await post('/payouts', { body: { amount: 2 } })).status).toBe(mismatch)
    expect(handle).toHaveBeenCalledTimes(1)
  })

  test.each([ietfDraft07, agenticCommerce, universalCommerce])('with $name one of 500 is not', async (profile) => {
    const handle = throwing(500)
    const { post } = await serve(place, [payouts(handle)], { options: { profile } })
    for (const _ of [1, 2]) expect(await post()).toMatchObject({ status: 500, isReplay: false })
    expect(handle).toHaveBeenCalledTimes(2)
  })

  test('a time limit that answers 408 while the handler goes on is not the result', async () => {
    const { opened, open } = gate()
    const handle = vi.fn(async () => {
      if (handle.mock.calls.length === 1) await opened
      return { paid: true }
    })
    const limit = {
      intercept: (_: ExecutionContext, next: CallHandler) =>
        next.handle().pipe(
          rxjs.timeout(50),
          rxjs.catchError(() => rxjs.throwError(() => new common.RequestTimeoutException())),
        ),
    }
    const { post } = await serve(place, [payouts(handle)], {
      options: { profile: ietfDraft07 },
      before: (app) => app.useGlobalInterceptors(limit),
    })
    expect(await post()).toMatchObject({ status: 408 })
    open()
    expect(await post()).toMatchObject({ status: 201, isReplay: false })
    expect(handle).toHaveBeenCalledTimes(2)
  })
})
