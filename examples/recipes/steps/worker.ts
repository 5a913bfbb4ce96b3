import type { Store } from 'once-per-key/core'
import { runner } from 'once-per-key/run'
import { fulfil, type Order, type Others } from './order.js'

/** For BullMQ: `new Worker('orders', processorOf(store, others), { connection })`, and `attempts` in the job's options. */
export function processorOf(store: Store, others: Others) {
  const once = runner({ store, name: 'orders' })

  return ({ data }: { readonly data: Order }) =>
    once({ scope: 'shop', key: data.id, input: data }, (context) => fulfil(context, data, others))
}
