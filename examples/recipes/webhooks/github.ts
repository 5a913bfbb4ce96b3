import type { Store } from 'once-per-key'
import { githubWebhooks, type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import { headerOf } from './header.js'

export interface GithubParts {
  readonly store: Store
  readonly secret: string
  /** What is done once for each push. */
  readonly deploy: (commit: string) => Promise<unknown>
}

/** The events of GitHub, each once. Mount it at a path of its own; the webhook's content type is application/json. */
export function githubReceiver({ store, secret, deploy }: GithubParts): WebhookReceiver {
  return webhookReceiver({
    store,
    source: 'github',
    verify: githubWebhooks({ secrets: [secret] }),
    // "If you request a redelivery, the X-GitHub-Delivery header will be the same as in the original delivery."
    parse: (raw, headers) => ({
      id: headerOf(headers, 'x-github-delivery'),
      type: headerOf(headers, 'x-github-event'),
      payload: JSON.parse(raw.toString()),
    }),
    on: { push: ({ payload }) => deploy(payload.after) },
    maxBodyBytes: 25 * 2 ** 20, // "Payloads are capped at 25 MB."
  })
}
