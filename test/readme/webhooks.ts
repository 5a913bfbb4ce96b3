// What the README's webhook example takes from the application. Compiled, not run.
declare const app: Express
declare const secret: string
declare const store: RedisStore
declare function rename(merchantId: string | null | undefined, name: string | null | undefined): Promise<void>

// README: the webhook example
import type { Express } from 'express'
import type { RedisStore } from 'once-per-key/redis'
import { standardWebhooks, webhookReceiver } from 'once-per-key/webhooks'

const receiver = webhookReceiver({
  store,
  source: 'payments',
  verify: standardWebhooks({ secrets: [secret] }),
  on: {
    merchant_updated: async (event) => rename(event.payload.id, event.payload.displayName),
  },
})
app.use(receiver) // before body parsers: a signature is about the bytes as they were sent
