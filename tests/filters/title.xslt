<?xml version="1.0" encoding="utf-8"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html"/>
  <xsl:template match="/page">
    <h1><xsl:value-of select="title"/></h1>
  </xsl:template>
</xsl:stylesheet>
