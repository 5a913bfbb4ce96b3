import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished, vi } from 'vitest'

export interface Delivered {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: what a receiver would read
  readonly event: any
}

/** An address for webhooks, for one test. `answer` gets the number of the delivery, from 1. */
export async function startSubscriber(answer: (res: ServerResponse, nth: number) => void = (res) => res.end()) {
  const delivered: Delivered[] = []
  const server = createServer(async (req, res) => {
    let text = ''
    for await (const chunk of req.setEncoding('utf8')) text += chunk
    delivered.push({ path: req.url ?? '', headers: req.headers, text, event: JSON.parse(text || 'null') })
    answer(res, delivered.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delivered,
    /** Resolves once that many deliveries have come. */
    async reached(count: number): Promise<readonly Delivered[]> {
      await vi.waitFor(
        () => {
          if (delivered.length < count) throw new Error(`${delivered.length} of ${count} deliveries have come`)
        },
        { interval: 2, timeout: 4_000 },
      )
      return delivered
    },
  }
}
