'use client'

import { createClient } from 'once-per-key/client'
import { useState } from 'react'

const ORDER = 'pay order-1001'

export default function Page() {
  const [end, setEnd] = useState('')

  async function pay() {
    const client = createClient({ keys: localStorage }) // the key outlives a reload
    const body = JSON.stringify({ amount: 5000 })
    const { outcome, response, replayed } = await client.send(ORDER, '/payouts', { body })
    setEnd(`${outcome}${replayed ? ', replayed' : ''}: ${await response?.text()}`)
  }

  return (
    <main>
      <button type="button" onClick={pay}>
        Pay 5000
      </button>
      <output>{end}</output>
    </main>
  )
}
