// The schema, where zod is installed: part of a schema of one's own, by what it puts out.
import { type WebhookEvent, webhookEventSchema } from 'once-per-key/webhooks'
import { z } from 'zod/v4'

const delivery = z.object({ receivedAt: z.string(), event: webhookEventSchema })

/** Whether two types are one. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

true satisfies Same<z.output<typeof webhookEventSchema>, WebhookEvent>
true satisfies Same<z.output<typeof delivery>['event'], WebhookEvent>
false satisfies Same<z.output<typeof delivery>['event'], unknown>

export function idOf(sent: unknown): string {
  const result = webhookEventSchema.safeParse(sent)
  if (!result.success) return result.error.issues.map(({ message }) => message).join()
  // @ts-expect-error sentType, and only of an unknown event
  result.data.senttype
  return result.data.id
}
