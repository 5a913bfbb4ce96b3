import { z } from 'zod'
import { id, webUrl } from '../fields.js'
import { type Books, newId } from '../ledger.js'
import type { Context, Operation } from '../operation.js'
import { notFound } from '../problems.js'

const events = z
  .array(z.enum(['mandate_setup_started', 'merchant_updated']))
  .min(1)
  .max(10)
// Standard Webhooks: "between 24 bytes (192 bits) and 64 bytes (512 bits)".
const secret = z.string().refine(isSecret, 'Must be whsec_ and 24 to 64 bytes in base64')
// Deliveries go to a path behind it.
const url = webUrl.refine(isPlain, 'Must have no credentials, query or fragment')

export interface WebhookSubscription {
  readonly id: string
  readonly url: string
  readonly events: z.output<typeof events>
  readonly secret: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

/** The ids of a merchant's subscriptions; its only entry has the id `all`. */
export interface SubscriptionList {
  readonly id: 'all'
  readonly ids: readonly string[]
}

/** What an answer shows: it is stored as it is sent, and a secret does not belong there. */
type ShownSubscription = Omit<WebhookSubscription, 'secret'> & { readonly signed: boolean }

const createSchema = z.strictObject({ url, events, secret: secret.optional() })

export const createWebhookSubscription: Operation<typeof createSchema, ShownSubscription> = {
  path: '/api/service/webhook-subscription/create',
  title: 'Create a webhook subscription',
  status: 201,
  schema: createSchema,
  async run({ url, events, secret = null }, { books, now }) {
    const subscription = newSubscription({ url, events, secret }, { books, now })
    books.put('subscriptionList', { id: 'all', ids: [...(await listed(books)), subscription.id] })
    return shown(subscription)
  },
  async sample() {
    return { url: 'https://shop.example/webhooks', events: ['merchant_updated'] }
  },
}

const deleteSchema = z.strictObject({ subscriptionId: id('whs') })

export const deleteWebhookSubscription: Operation<typeof deleteSchema, { id: string; deleted: true }> = {
  path: '/api/service/webhook-subscription/delete',
  title: 'Delete a webhook subscription',
  status: 200,
  schema: deleteSchema,
  async run({ subscriptionId }, { books }) {
    await existing(books, subscriptionId)
    books.delete('webhookSubscription', subscriptionId)
    books.put('subscriptionList', { id: 'all', ids: (await listed(books)).filter((id) => id !== subscriptionId) })
    return { id: subscriptionId, deleted: true }
  },
  async sample(context) {
    return { subscriptionId: unlistedSubscription(context).id }
  },
}

const updateSchema = z
  .strictObject({
    subscriptionId: id('whs'),
    url: url.optional(),
    events: events.optional(),
    secret: secret.optional(),
  })
  .refine((given) => Object.keys(given).length > 1, 'Name at least one field to change')

export const updateWebhookSubscription: Operation<typeof updateSchema, ShownSubscription> = {
  path: '/api/service/webhook-subscription/update',
  title: 'Update a webhook subscription',
  status: 200,
  schema: updateSchema,
  async run({ subscriptionId, url, events, secret }, { books, now }) {
    const subscription = await existing(books, subscriptionId)
    const updated: WebhookSubscription = {
      ...subscription,
      url: url ?? subscription.url,
      events: events ?? subscription.events,
      secret: secret ?? subscription.secret,
      updatedAt: now.toISOString(),
    }
    books.put('webhookSubscription', updated)
    return shown(updated)
  },
  async sample(context) {
    return { subscriptionId: unlistedSubscription(context).id, events: ['merchant_updated', 'mandate_setup_started'] }
  },
}

/** Of a merchant's subscriptions, those that ask for events of a type. */
export async function subscribersOf(books: Books, type: WebhookSubscription['events'][number]): Promise<string[]> {
  const ids = await listed(books)
  const all = await Promise.all(ids.map((id) => books.get('webhookSubscription', id)))
  return all.flatMap((subscription) => (subscription?.events.includes(type) ? [subscription.id] : []))
}

async function listed(books: Books): Promise<readonly string[]> {
  return (await books.get('subscriptionList', 'all'))?.ids ?? []
}

type Given = Pick<WebhookSubscription, 'url' | 'events' | 'secret'>

function newSubscription(given: Given, { books, now }: Context): WebhookSubscription {
  const createdAt = now.toISOString()
  const subscription = { id: newId('whs'), ...given, createdAt, updatedAt: createdAt }
  books.put('webhookSubscription', subscription)
  return subscription
}

/** There to be changed, but not listed: nothing is sent to a sample. */
function unlistedSubscription(context: Context): WebhookSubscription {
  return newSubscription({ url: 'https://shop.example/webhooks', events: ['merchant_updated'], secret: null }, context)
}

async function existing(books: Books, id: string): Promise<WebhookSubscription> {
  const subscription = await books.get('webhookSubscription', id)
  if (subscription === undefined) throw notFound('webhook subscription', id)
  return subscription
}

function shown({ secret, ...rest }: WebhookSubscription): ShownSubscription {
  return { ...rest, signed: secret !== null }
}

function isSecret(given: string): boolean {
  const [, base64 = ''] = /^whsec_(.+)$/.exec(given) ?? []
  const bytes = Buffer.from(base64, 'base64')
  // Another spelling of the same bytes is not read alike everywhere.
  return bytes.length >= 24 && bytes.length <= 64 && bytes.toString('base64') === base64
}

function isPlain(given: string): boolean {
  if (!URL.canParse(given)) return true // Said by webUrl already.
  const { username, password } = new URL(given)
  return username === '' && password === '' && !/[?#]/.test(given)
}
