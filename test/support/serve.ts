import { type IdempotencyEvent, type IdempotencyOptions, idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { onTestFinished } from 'vitest'
import {
  BARE,
  type Binding,
  type ErrorStep,
  jsonBody,
  listen,
  type Running,
  type Stack,
  type Step,
} from './bindings.js'

export interface Serving extends Running {
  readonly store: Store
  readonly once: ReturnType<typeof idempotency>
  readonly events: IdempotencyEvent[]
  /** Resolves when an event of this type has come. */
  seen(type: IdempotencyEvent['type']): Promise<void>
  /** How often the handler ran. */
  runs(): number
}

export interface Setting {
  readonly stack?: Stack
  /** Mounted between the middleware and the handler. */
  readonly behind?: readonly Step[]
  /** Mounted before everything else. */
  readonly before?: readonly Step[]
  readonly onError?: ErrorStep
  /** `false`: the same application without the middleware. */
  readonly isProtected?: boolean
  readonly options?: Partial<IdempotencyOptions>
}

/** Serves one handler, for one test, on a free port. */
export async function serve(binding: Binding, handler: Step, setting: Setting = {}): Promise<Serving> {
  const { stack = BARE, behind = [], before = [], onError, isProtected = true, options } = setting
  const events: IdempotencyEvent[] = []
  const waiting = new Set<() => void>()
  const seen = (type: IdempotencyEvent['type']): Promise<void> =>
    new Promise((resolve) => {
      const look = () => {
        if (events.some((event) => event.type === type)) resolve()
      }
      waiting.add(look)
      look()
    })
  const store = options?.store ?? new MemoryStore()
  const once = idempotency({
    scope: () => 'acme',
    methods: ['POST', 'HEAD', 'PUT'],
    ...options,
    store,
    onEvent(event) {
      events.push(event)
      for (const wake of waiting) wake()
    },
  })
  let count = 0
  // As in an application: Express 5 sees the promise that the handler returns.
  const counted: Step = (req, res, next) => {
    count++
    return handler(req, res, next)
  }
  const middle = isProtected ? [once as Step] : []
  const steps = [...before, ...stack.steps(), jsonBody, ...middle, ...behind, counted]
  const running = await listen(binding.listener(steps, onError))
  onTestFinished(running.close)
  return { ...running, store, once, events, seen, runs: () => count }
}
