import { createClient, type KeyStorage } from 'once-per-key/client'

/** Payments of a page. `keys` is the browser's `localStorage`: a key in it outlives a reload. */
export function payments(keys: KeyStorage) {
  const client = createClient({ keys })

  /** Pays an order, and returns what to tell the user. After `unknown` and after a reload, call it again: it goes on. */
  return async function pay(order: string, amount: number): Promise<string> {
    const operation = `pay ${order}` // the same name is the same payment
    const end = await client.send(operation, '/payouts', {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ order, amount }),
    })
    switch (end.outcome) {
      case 'done': {
        const { id } = (await end.response.json()) as { id: string }
        await client.forget(operation) // last, when the order shows as paid: from then on the same call pays again
        return `Paid: ${id}`
      }
      case 'refused': // it has not happened: what was wrong can be corrected
        return end.problem?.detail ?? 'The payment was refused.'
      case 'unknown': // it may have happened: never start it under another name
        return 'We do not know yet whether this was paid. Try again: it is never paid twice.'
    }
  }
}
