import { z } from 'zod'
import { id, webUrl } from '../fields.js'
import { type Books, newId } from '../ledger.js'
import type { Operation } from '../operation.js'
import { notFound } from '../problems.js'

const events = z
  .array(z.enum(['mandate_setup_started', 'merchant_updated']))
  .min(1)
  .max(10)
const secret = z.string().regex(/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/, 'Must be whsec_ and at least 24 bytes in base64')

export interface WebhookSubscription {
  readonly id: string
  readonly url: string
  readonly events: z.output<typeof events>
  readonly secret: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

/** What an answer shows: it is stored as it is sent, and a secret does not belong there. */
type ShownSubscription = Omit<WebhookSubscription, 'secret'> & { readonly signed: boolean }

const createSchema = z.strictObject({ url: webUrl, events, secret: secret.optional() })

export const createWebhookSubscription: Operation<typeof createSchema, ShownSubscription> = {
  path: '/api/service/webhook-subscription/create',
  title: 'Create a webhook subscription',
  status: 201,
  schema: createSchema,
  async run({ url, events, secret = null }, { books, now }) {
    const createdAt = now.toISOString()
    const subscription = { id: newId('whs'), url, events, secret, createdAt, updatedAt: createdAt }
    books.put('webhookSubscription', subscription)
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
    return { id: subscriptionId, deleted: true }
  },
  async sample(context) {
    const { id } = await createWebhookSubscription.run(await createWebhookSubscription.sample(context), context)
    return { subscriptionId: id }
  },
}

const updateSchema = z
  .strictObject({
    subscriptionId: id('whs'),
    url: webUrl.optional(),
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
    const { id } = await createWebhookSubscription.run(await createWebhookSubscription.sample(context), context)
    return { subscriptionId: id, events: ['merchant_updated', 'mandate_setup_started'] }
  },
}

async function existing(books: Books, id: string): Promise<WebhookSubscription> {
  const subscription = await books.get('webhookSubscription', id)
  if (subscription === undefined) throw notFound('webhook subscription', id)
  return subscription
}

function shown({ secret, ...rest }: WebhookSubscription): ShownSubscription {
  return { ...rest, signed: secret !== null }
}
