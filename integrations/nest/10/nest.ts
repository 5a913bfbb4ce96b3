import 'reflect-metadata'

export * as common from '@nestjs/common'
export { NestFactory } from '@nestjs/core'
export { MessagePattern } from '@nestjs/microservices'
export { FastifyAdapter } from '@nestjs/platform-fastify'
export * as entry from 'once-per-key/nest'
export * as rxjs from 'rxjs'
