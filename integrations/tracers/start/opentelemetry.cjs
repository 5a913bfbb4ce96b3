const FastifyOtel = require('@fastify/otel')
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { IORedisInstrumentation } = require('@opentelemetry/instrumentation-ioredis')
const { KoaInstrumentation } = require('@opentelemetry/instrumentation-koa')
const { MySQL2Instrumentation } = require('@opentelemetry/instrumentation-mysql2')
const { PgInstrumentation } = require('@opentelemetry/instrumentation-pg')
const { RedisInstrumentation } = require('@opentelemetry/instrumentation-redis')
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici')
const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node')

const exporter = new InMemorySpanExporter()
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
// Comments in each statement are what changes a query most.
const options = { addSqlCommenterCommentToQueries: true, enhancedDatabaseReporting: true }
registerInstrumentations({
  instrumentations: [
    new ExpressInstrumentation(),
    new FastifyOtel.FastifyOtelInstrumentation({ registerOnInitialization: true }),
    new HttpInstrumentation(),
    new IORedisInstrumentation(),
    new KoaInstrumentation(),
    new MySQL2Instrumentation(options),
    new PgInstrumentation(options),
    new RedisInstrumentation(),
    new UndiciInstrumentation(),
  ],
})
