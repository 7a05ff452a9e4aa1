import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A stored plant. Rows are only inserted, never changed. */
@Entity('plants')
export class PlantEntity {
  /** An int64 as decimal digits, as TypeORM reads bigint: a JavaScript number would round it. */
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'plants_pkey' })
  id: string;

  @Column('text')
  name: string;

  @Column('text', { nullable: true })
  tag: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
