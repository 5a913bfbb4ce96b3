import { onTestFinished } from 'vitest'

export interface FeedMessage {
  readonly event: { readonly type: string; readonly [fact: string]: unknown } | null
  readonly record?: { readonly state: string; readonly [fact: string]: unknown } | null
}

/** Reads a feed message by message, as the page does. It is closed when the test ends. */
export async function readFeed(origin: string, key: string, apiKey = 'demo_acme') {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(`${origin}/demo/feed?key=${encodeURIComponent(key)}`, {
    headers: { authorization: `Bearer ${apiKey}` },
    signal: leaving.signal,
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let unread = ''

  /** `null`: the feed has ended. */
  async function next(): Promise<FeedMessage | null> {
    while (!unread.includes('\n\n')) {
      const { done, value } = await reader.read()
      if (done) return null
      unread += decoder.decode(value, { stream: true })
    }
    const end = unread.indexOf('\n\n')
    const message = unread.slice('data: '.length, end)
    unread = unread.slice(end + 2)
    return JSON.parse(message)
  }

  return {
    response,
    next,
    /** The next one that tells of an event. */
    async nextEvent(): Promise<FeedMessage | null> {
      for (let message = await next(); message !== null; message = await next()) {
        if (message.event !== null) return message
      }
      return null
    },
    leave: () => leaving.abort(),
  }
}
