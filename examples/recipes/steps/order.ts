import type { IdempotencyContext } from 'once-per-key/core'

export interface Order {
  readonly id: string
  readonly cents: number
}

/** Others, who know a repeat by its key. */
export interface Others {
  charge(order: Order, idempotencyKey: string): Promise<{ readonly id: string }>
  book(chargeId: string, reference: string): Promise<{ readonly parcel: string }>
  mail(order: Order, parcel: string, idempotencyKey: string): Promise<void>
}

/** Charges, ships, and writes a mail. Whoever runs it again after a crash goes on after the last step that was done. */
export async function fulfil({ step }: Pick<IdempotencyContext, 'step'>, order: Order, { charge, book, mail }: Others) {
  const { id } = await step('charge', ({ key }) => charge(order, key))
  const { parcel } = await step('ship', ({ key }) => book(id, key))
  await step('mail', ({ key }) => mail(order, parcel, key))
  return { charge: id, parcel }
}
